"""The edge of the product: requests become typed values, results and errors become HTTP answers."""
