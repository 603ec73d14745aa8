// Which tokens of a vocabulary may come next: one bit a token, token t is bit t % 32 of word t
// / 32. An empty mask allows every token.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.h"

namespace fermata {

using TokenMask = std::span<const std::uint32_t>;

inline constexpr std::size_t kMaskWordBits = 32;

constexpr std::size_t mask_words(std::size_t vocabulary_size) {
    return (vocabulary_size + kMaskWordBits - 1) / kMaskWordBits;
}

inline bool allows(TokenMask mask, Token token) {
    if (mask.empty()) return true;
    const auto id = static_cast<std::size_t>(token);
    return token >= 0 && id / kMaskWordBits < mask.size() &&
           (mask[id / kMaskWordBits] >> (id % kMaskWordBits) & 1u) != 0;
}

inline void take_out(std::span<std::uint32_t> mask, Token token) {
    const auto id = static_cast<std::size_t>(token);
    if (id / kMaskWordBits < mask.size())
        mask[id / kMaskWordBits] &= ~(std::uint32_t{1} << (id % kMaskWordBits));
}

// Calls `visit` with every id below `count` that a mask allows, ascending. The mask is not empty.
template <class Visit>
void for_each_allowed(TokenMask mask, std::size_t count, Visit visit) {
    for (std::size_t word = 0; word < mask.size(); ++word) {
        for (std::uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
            const std::size_t id =
                word * kMaskWordBits + static_cast<std::size_t>(std::countr_zero(bits));
            if (id >= count) return;
            visit(id);
        }
    }
}

}  // namespace fermata
