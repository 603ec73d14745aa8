export function importProblem(file: string, source: string, specifier: string): string | undefined;
