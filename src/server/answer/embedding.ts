/** Models that were trained for it say most in their first numbers. */
export function shortened(vector: Float32Array, dimensions: number): Float32Array {
  if (dimensions >= vector.length) return vector;
  const head = vector.slice(0, dimensions);
  const length = Math.hypot(...head);
  return length === 0 ? head : head.map((value) => value / length);
}
