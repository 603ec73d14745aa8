/** Numbers, or structures of the same form with numbers in them, place by place; of what is no number, the first's. */
function mean(values) {
  const [first] = values;
  if (typeof first === "number")
    return values.reduce((total, value) => total + value, 0) / values.length;
  if (typeof first !== "object" || first === null) return first;
  const parts = Object.entries(first).map(([name]) => [
    name,
    mean(values.map((value) => value[name])),
  ]);
  return Array.isArray(first) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

/** The speed of a machine drifts, above all if it is a part of another one: the mean of several calibrations. */
export function averageOf(calibrations) {
  const { machine, date, shape, engine } = calibrations[0];
  const busy = calibrations.some((calibration) => calibration.busy);
  return { ...mean(calibrations), machine, date, shape, engine, busy };
}
