import type { FermataError } from "../../errors.ts";

export interface ErrorBody {
  error: { message: string; type: string; param: string | null; code: string };
}

export function errorBody({ message, type, param, code }: FermataError): ErrorBody {
  return { error: { message, type, param, code } };
}
