// Force-included into ggml-cpu when the compiler is GCC.
//
// GCC before 11.5, 12.4, 13.3 and 14 tells the optimizer that _tile_loadconfig reads 8 of its 64
// input bytes (GCC bug 114098). The stores that fill the other 56 are then dropped, and the first
// tile instruction raises SIGILL.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__AMX_TILE__)

#include <immintrin.h>

struct fermata_tile_config {
    char bytes[64];
};

static inline void fermata_tile_loadconfig(const void* config) {
    __asm__ volatile("ldtilecfg %0" : : "m"(*(const struct fermata_tile_config*)config));
}

#undef _tile_loadconfig
#define _tile_loadconfig(config) fermata_tile_loadconfig(config)

#endif
