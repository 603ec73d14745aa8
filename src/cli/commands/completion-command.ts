/** `fermata completion SHELL`: a script for the shell, made from the commands' tables. */

import { invalidOption } from "../../errors.ts";
import type { Command, CommandContext, ParsedArguments } from "./command.ts";
import { didYouMean } from "../../near-names.ts";
import { flagNames, type OptionSpec } from "../options/option-table.ts";

const shells = ["bash", "zsh", "fish"];

export const completionCommand: Omit<Command, "run"> = {
  name: "completion",
  summary: "Print a script that completes commands and options in your shell.",
  usage: "completion bash|zsh|fish",
  operands: { min: 1, max: 1, choices: shells },
  options: {},
  examples: `  For this session, and for good:
    source <(fermata completion bash)
    fermata completion bash >> ~/.bashrc
    fermata completion zsh > ~/.zfunc/_fermata
    fermata completion fish > ~/.config/fish/completions/fermata.fish
`,
};

/** @throws FermataError invalid_option */
export function runCompletion(
  { operands }: ParsedArguments,
  { out }: CommandContext,
  commands: readonly Command[],
): number {
  const shell = operands[0]!;
  const script = { bash, zsh, fish }[shell];
  if (script === undefined) {
    const message = `There is no completion for ${shell}.${didYouMean(shell, shells)} It knows ${shells.join(", ")}.`;
    throw invalidOption(message, shell);
  }
  out(script(commands));
  return 0;
}

interface CompletedOption {
  names: string[];
  spec: OptionSpec;
}

function optionsOf({ options }: Command): CompletedOption[] {
  return Object.entries(options).map(([key, spec]) => ({ names: flagNames(key, spec), spec }));
}

function bash(commands: readonly Command[]): string {
  const cases = commands.map((command) => {
    const options = optionsOf(command);
    const names = options.flatMap(({ names: all }) => all).join(" ");
    const values = options.flatMap(({ names: all, spec }) => {
      const action = bashValue(spec);
      return action === null ? [] : [`      ${all.join("|")}) ${action}; return ;;\n`];
    });
    const words = [names, "--help", ...(command.operands.choices ?? [])].join(" ").trim();
    return `  ${command.name})
    case "$previous" in
${values.join("")}    esac
    COMPREPLY=($(compgen -W "${words}" -- "$word"))
    [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word")) ;;
`;
  });
  return `# fermata completion bash
_fermata() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")} --help --version" -- "$word"))
    return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join("")}  esac
}
complete -o filenames -F _fermata fermata
`;
}

/** Null: it has no value. */
function bashValue(spec: OptionSpec): string | null {
  if (spec.kind === "boolean") return null;
  if (spec.kind === "choice")
    return `COMPREPLY=($(compgen -W "${spec.choices.join(" ")}" -- "$word"))`;
  return spec.kind === "path" ? 'COMPREPLY=($(compgen -f -- "$word"))' : "COMPREPLY=()";
}

function zsh(commands: readonly Command[]): string {
  const quote = (text: string): string =>
    text.replaceAll("'", "'\\''").replaceAll(/[[\]:]/g, (character) => `\\${character}`);
  const described = commands.map(({ name, summary }) => `    '${name}:${quote(summary)}'\n`);
  const cases = commands.map((command) => {
    const specs = optionsOf(command).flatMap(({ names, spec }) =>
      names.map((name) => `      '*${name}[${quote(spec.help)}]${zshValue(spec)}' \\\n`),
    );
    const operands = command.operands.choices;
    const rest = operands === undefined ? "_files" : `(${operands.join(" ")})`;
    return `  ${command.name})\n    _arguments \\\n${specs.join("")}      '--help[All options]' '*:argument:${rest}' ;;\n`;
  });
  return `#compdef fermata
_fermata() {
  local -a commands=(
${described.join("")}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  words=("\${(@)words[2,-1]}")
  ((CURRENT--))
  case $command in
${cases.join("")}  esac
}
if [[ $funcstack[1] == _fermata ]]; then _fermata; else compdef _fermata fermata; fi
`;
}

function zshValue(spec: OptionSpec): string {
  if (spec.kind === "boolean") return "";
  const what = (spec.value ?? "value").toLowerCase().replaceAll(/[^a-z]/g, "");
  if (spec.kind === "choice") return `:${what}:(${spec.choices.join(" ")})`;
  return spec.kind === "path" ? `:${what}:_files` : `:${what}: `;
}

function fish(commands: readonly Command[]): string {
  const quote = (text: string): string =>
    `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = commands.flatMap((command) => {
    const own = `complete -c fermata -n '__fish_seen_subcommand_from ${command.name}'`;
    const options = optionsOf(command).flatMap(({ names, spec }) =>
      names.map((name) => `${own} ${fishName(name)}${fishValue(spec)} -d ${quote(spec.help)}`),
    );
    const operands = (command.operands.choices ?? []).map((word) => `${own} -f -a ${word}`);
    const start = `complete -c fermata -f -n __fish_use_subcommand -a ${command.name} -d ${quote(command.summary)}`;
    return [start, ...options, ...operands];
  });
  return `# fermata completion fish\n${lines.join("\n")}\n`;
}

function fishName(name: string): string {
  if (name.startsWith("--")) return `-l ${name.slice(2)}`;
  return `${name.length === 2 ? "-s" : "-o"} ${name.slice(1)}`;
}

function fishValue(spec: OptionSpec): string {
  if (spec.kind === "boolean") return "";
  if (spec.kind === "choice") return ` -x -a '${spec.choices.join(" ")}'`;
  return spec.kind === "path" ? " -r -F" : " -x";
}
