/** The folder of llama.cpp's source; there once the project is set up. */
export const llamaSource: string;
