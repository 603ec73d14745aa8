/** For each text of `only` the one of exactly this name, else all whose name contains it; all without `only`. */
export function chosen(contestants, only = [""]) {
  const names = only.map((text) => {
    const exact = contestants.some(({ name }) => name === text);
    return (name) => (exact ? name === text : name.includes(text));
  });
  return contestants.filter(({ name }) => names.some((matches) => matches(name)));
}
