"""The product's own functions in virtual time, over a table and a cloud of this process, with the delays of AWS."""
