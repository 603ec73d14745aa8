/** The value of one line of /metrics; `name` with its labels. NaN: there is no such line. */
export async function metric({ url }: { url: string }, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((each) => each.startsWith(`${name} `));
  return Number(line?.slice(name.length) ?? NaN);
}
