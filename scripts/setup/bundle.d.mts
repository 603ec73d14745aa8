export const notBundled: string[];
export function bundle(): Promise<string[]>;
