// Prices of node types. A price of 0 of a block that was paid ahead is no price.
const OWN = new Set(["on-demand", "spot"]);

/** Least price of what may be had by the hour, or null. */
export function leastOf(type) {
  const prices = priced(type).map((each) => each.usd_hour);
  if (prices.length) return Math.min(...prices);
  return type.owned ? type.usd_hour : null;
}
const priced = (type) => type.offerings.filter((each) => OWN.has(each.capacity_type) && each.usd_hour !== null);
/** Least price of one capacity type, or null. */
export function priceOf(type, capacity) {
  const prices = priced(type).filter((each) => each.capacity_type === capacity).map((each) => each.usd_hour);
  return prices.length ? Math.min(...prices) : null;
}
export const zonesOf = (type) => [...new Set(type.offerings.flatMap((each) => each.zones))].map((zone) => (zone === "*" ? "any" : zone));
export const paidAhead = (type) => type.offerings.some((each) => each.capacity_type === "capacity-block");
