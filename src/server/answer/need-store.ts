import type { ResponseStore } from "../../store/types.ts";
import { fieldError } from "../body/field.ts";

/** @throws FermataError unsupported_value: the server keeps nothing */
export function needStore(store: ResponseStore | null, field: string): ResponseStore {
  if (store !== null) return store;
  throw fieldError(
    "unsupported_value",
    field,
    "needs a store, and this server was started without one",
    "Send the whole history as input, or start the server with --store",
  );
}
