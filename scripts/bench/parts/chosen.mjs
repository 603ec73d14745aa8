/** Those that `only` names: the one of exactly this name, else all whose name contains it. */
export function chosen(contestants, only = "") {
  const exact = contestants.filter(({ name }) => name === only);
  return exact.length > 0 ? exact : contestants.filter(({ name }) => name.includes(only));
}
