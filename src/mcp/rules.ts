/** What the operator allows of a server's tools: which are offered, which run early, which are asked about. */

import type { ApprovalPolicy as ToolApproval } from "../tools/types.ts";

export type ApprovalPolicy = ToolApproval | "annotations";

/** `*` stands for any characters; everything else for itself. */
type NamePattern = string;

export interface McpToolRules {
  /** By the server's own names. Null: all. */
  allow: readonly NamePattern[] | null;
  /** Wins over `allow`. */
  deny: readonly NamePattern[];
  /** Null: as the server's annotations say. */
  readOnly: boolean | readonly NamePattern[] | null;
  /** The first pattern that matches decides; exact names stand before patterns. */
  approval: readonly (readonly [NamePattern, ApprovalPolicy])[];
}

/** What a server says of a tool of its own. Nobody checks it. */
export interface McpAnnotations {
  readOnly: boolean;
  /** Default: yes, if it is not read-only. */
  destructive: boolean;
}

/** Of a tool that its server has changed: hints that count for nothing. */
export const untrusted: McpAnnotations = { readOnly: false, destructive: true };

export const noRules: McpToolRules = { allow: null, deny: [], readOnly: null, approval: [] };

export function isOffered({ allow, deny }: McpToolRules, name: string): boolean {
  if (matchesAny(deny, name)) return false;
  return allow === null || matchesAny(allow, name);
}

export function isReadOnly(
  { readOnly }: McpToolRules,
  name: string,
  annotations: McpAnnotations,
): boolean {
  if (readOnly === null) return annotations.readOnly;
  return typeof readOnly === "boolean" ? readOnly : matchesAny(readOnly, name);
}

/** Undefined: the operator has not decided. */
export function approvalOf(
  { approval }: McpToolRules,
  name: string,
  annotations: McpAnnotations,
): ToolApproval | undefined {
  const policy = approval.find(([pattern]) => matches(pattern, name))?.[1];
  if (policy !== "annotations") return policy;
  return annotations.readOnly || !annotations.destructive ? "never" : "always";
}

/** Rules that fit none of the server's tools: maybe a slip of the pen that leaves a door open. */
export function unusedPatterns(rules: McpToolRules, names: readonly string[]): NamePattern[] {
  const { allow, deny, readOnly, approval } = rules;
  const patterns = [
    ...(allow ?? []),
    ...deny,
    ...(typeof readOnly === "boolean" || readOnly === null ? [] : readOnly),
    ...approval.map(([pattern]) => pattern),
  ];
  const isUnused = (pattern: string): boolean => !names.some((name) => matches(pattern, name));
  return [...new Set(patterns)].filter((pattern) => pattern !== "*" && isUnused(pattern));
}

function matchesAny(patterns: readonly NamePattern[], name: string): boolean {
  return patterns.some((pattern) => matches(pattern, name));
}

/** Without a regular expression: no pattern takes long on any name. */
function matches(pattern: NamePattern, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  if (!name.startsWith(first)) return false;
  const last = rest.pop() ?? "";
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
