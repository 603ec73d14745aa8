/** The address of a Postgres database, as `--store` has it. It may hold a password, which nothing that is written has. */

import { invalidOption } from "../../errors.ts";

export function isPostgresAddress(store: string): boolean {
  return /^postgres(ql)?:/i.test(store);
}

/** The address without its password and its query, for logs and errors. */
export function plainAddress(address: string): string {
  const { protocol, username, host, pathname } = parsed(address);
  const user = username === "" ? "" : `${username}@`;
  return `${protocol}//${user}${host}${pathname}`;
}

/** @throws FermataError invalid_option, without the address */
function parsed(address: string): URL {
  // Without a host, the folder of the server's socket may be in the query: postgres:///name?host=/run/postgresql
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url !== null && /^\w+:\/\//.test(address)) return url;
  const message =
    "--store is no Postgres address. Write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password as %XX.";
  throw invalidOption(message, "store");
}
