/** A command line's flags from an object of them; a value of true stands for a flag without one. */
export function flagList(flags) {
  return Object.entries(flags).flatMap(([name, value]) =>
    value === true ? [name] : [name, String(value)],
  );
}
