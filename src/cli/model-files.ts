/** GGUF files of a folder or a repository, the parts of a split model taken as one. */

export interface ModelFiles {
  /** The first part's path. */
  first: string;
  /** All of them, in order; one for a model that is not split. */
  paths: string[];
  /** `Q4_K_M`, as the name says, or null. */
  quantization: string | null;
  /** Parts that the name speaks of and that are not there. */
  missing: number;
}

const partPattern = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i;
const quantizationPattern =
  /(?:^|[-._/])((?:UD-)?(?:I?Q\d_[A-Z0-9]+(?:_[A-Z]+)*|TQ\d_\d|MXFP4(?:_MOE)?|BF16|F16|F32))(?=[-._/]|$)/gi;
/** Projectors, importance matrices, adapters: files beside a model, none by themselves. */
const companionPattern = /(^|[-._/])(mmproj|imatrix|lora|adapter)([-._]|$)/i;

/** Of all `paths`, in the order of their names. */
export function groupModelFiles(paths: readonly string[]): ModelFiles[] {
  const groups = new Map<string, string[]>();
  for (const path of [...paths].toSorted()) {
    if (!/\.gguf$/i.test(path) || companionPattern.test(baseName(path))) continue;
    const part = partPattern.exec(path);
    const key = part === null ? path : `${part[1]}-of-${part[3]}`;
    groups.set(key, [...(groups.get(key) ?? []), path]);
  }
  return [...groups.values()].map((parts) => {
    const total = Number(partPattern.exec(parts[0]!)?.[3] ?? 1);
    return {
      first: parts[0]!,
      paths: parts,
      quantization: quantizationOf(parts[0]!),
      missing: total - parts.length,
    };
  });
}

/** The last one that the name has: a folder may be named after its quantization too. */
function quantizationOf(path: string): string | null {
  const found = [...path.replace(/\.gguf$/i, "").matchAll(quantizationPattern)];
  return found.at(-1)?.[1]?.toUpperCase() ?? null;
}

/** Without folder, part number and ending: what people call the model. */
export function modelName(path: string): string {
  return baseName(path)
    .replace(partPattern, "$1")
    .replace(/\.gguf$/i, "");
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
