/**
 * What a model that must answer is told, as words of the user: small models read over what stands in a result, or
 * repeat it as their answer. Measured on small models: without "in words" they call on.
 */

/** Tools can no longer be called. @param hasForm the answer is a document of a given form */
export function lastWords(hasForm: boolean): string {
  return `No more tools can be called. Answer my question now, ${formOf(hasForm)}, with what the results above say.`;
}

/** A call and its result were there before. */
export function repeatWords(hasForm: boolean): string {
  return `The same call gave the same result again. Do something else, or answer my question ${formOf(hasForm)} with what the results above say.`;
}

function formOf(hasForm: boolean): string {
  return hasForm ? "in the form that was asked for" : "in words";
}
