/** `4.7 GB`, in powers of ten as disks and networks have it. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** `2 h 05 min`, `3 min 20 s`, `12 s` */
export function durationText(seconds: number): string {
  const whole = Math.ceil(seconds);
  const two = (value: number): string => String(value).padStart(2, "0");
  if (whole >= 3600)
    return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
  if (whole >= 60) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${whole} s`;
}
