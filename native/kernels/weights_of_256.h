// K-quants as panels_of_256.h unpacks them: number = scale * part's scale * (byte - kOffset)
// - minimum * part's minimum.
//
// Packed numbers are turned before they are unpacked, a half of a block at a time. kSixteens: how
// many sixteens of packed bytes a half needs; at(half, n): where the n-th is in a block.
// kMost: the greatest byte. numbers<Half, I>(sixteen): the I-th sixteen numbers of a half, from the
// packed bytes sixteen(n). scale_bytes: where the parts' scales are; unpack_scales: makes them once
// they are turned.
#pragma once

#include "kernels/bytes.h"

#ifdef FERMATA_BYTES

#include <cstddef>

#include "ggml-cpu-impl.h"

namespace fermata::products {

using namespace bytes;

// Eight scales and eight minima of six bits, in twelve bytes.
template <typename PackedBlock>
struct WeightsWithSixBitScales {
    using Block = PackedBlock;
    static constexpr int kPartNumbers = 32;
    static constexpr int kOffset = 0;
    static constexpr bool kHasMinimum = true;

    static __m128i scale_bytes(const Block& block) { return load16(block.scales); }

    static void unpack_scales(const Bytes (&packed)[4], std::uint8_t (*scales)[kBytes],
                              std::uint8_t (*minima)[kBytes]) {
        const Bytes a = packed[0], b = packed[1], c = packed[2];
        store(scales[0], moved<0x3f, 0>(a));
        store(scales[1], either(moved<0x0f, 0>(c), moved<0xc0, -2>(a)));
        store(minima[0], moved<0x3f, 0>(b));
        store(minima[1], either(moved<0xf0, -4>(c), moved<0xc0, -2>(b)));
    }
};

struct WeightsQ4_K : WeightsWithSixBitScales<block_q4_K> {
    static constexpr int kMost = 15;
    static constexpr int kSixteens = 4;
    static constexpr int at(int half, int n) { return offsetof(Block, qs) + 64 * half + 16 * n; }

    template <int Half, int I, typename Sixteen>
    static Bytes numbers(const Sixteen& sixteen) {
        const Bytes packed = sixteen(I / 4 * 2 + I % 2);
        return I % 4 < 2 ? moved<0x0f, 0>(packed) : moved<0xf0, -4>(packed);
    }
};

struct WeightsQ5_K : WeightsWithSixBitScales<block_q5_K> {
    static constexpr int kMost = 31;
    static constexpr int kSixteens = 6;
    static constexpr int at(int half, int n) {
        return n < 4 ? offsetof(Block, qs) + 64 * half + 16 * n
                     : offsetof(Block, qh) + 16 * (n - 4);
    }

    template <int Half, int I, typename Sixteen>
    static Bytes numbers(const Sixteen& sixteen) {
        constexpr int kBit = 4 * Half + I / 2;  // of qh
        return either(WeightsQ4_K::numbers<Half, I>(sixteen),
                      moved<1 << kBit, 4 - kBit>(sixteen(4 + I % 2)));
    }
};

struct WeightsQ6_K {
    using Block = block_q6_K;
    static constexpr int kMost = 63;
    static constexpr int kPartNumbers = 16;
    static constexpr int kOffset = 32;
    static constexpr bool kHasMinimum = false;
    static constexpr int kSixteens = 6;
    static constexpr int at(int half, int n) {
        return n < 4 ? offsetof(Block, ql) + 64 * half + 16 * n
                     : offsetof(Block, qh) + 32 * half + 16 * (n - 4);
    }

    static __m128i scale_bytes(const Block& block) { return load16(block.scales); }

    static void unpack_scales(const Bytes (&packed)[4], std::uint8_t (*scales)[kBytes],
                              std::uint8_t (*)[kBytes]) {
        for (int i = 0; i < 4; ++i)
            store(scales[i], packed[i]);
    }

    template <int Half, int I, typename Sixteen>
    static Bytes numbers(const Sixteen& sixteen) {
        constexpr int kBit = I / 2 * 2;  // of qh, and the next
        const Bytes packed = sixteen(I % 4);
        const Bytes low = I < 4 ? moved<0x0f, 0>(packed) : moved<0xf0, -4>(packed);
        return either(low, moved<0x03 << kBit, 4 - kBit>(sixteen(4 + I % 2)));
    }
};

struct WeightsQ2_K {
    using Block = block_q2_K;
    static constexpr int kMost = 3;
    static constexpr int kPartNumbers = 16;
    static constexpr int kOffset = 0;
    static constexpr bool kHasMinimum = true;
    static constexpr int kSixteens = 2;
    static constexpr int at(int half, int n) { return offsetof(Block, qs) + 32 * half + 16 * n; }

    static __m128i scale_bytes(const Block& block) { return load16(block.scales); }

    static void unpack_scales(const Bytes (&packed)[4], std::uint8_t (*scales)[kBytes],
                              std::uint8_t (*minima)[kBytes]) {
        for (int i = 0; i < 4; ++i) {
            store(scales[i], moved<0x0f, 0>(packed[i]));
            store(minima[i], moved<0xf0, -4>(packed[i]));
        }
    }

    template <int Half, int I, typename Sixteen>
    static Bytes numbers(const Sixteen& sixteen) {
        constexpr int kBit = I / 2 * 2;  // and the next
        return moved<0x03 << kBit, -kBit>(sixteen(I % 2));
    }
};

struct WeightsQ3_K {
    using Block = block_q3_K;
    static constexpr int kMost = 7;
    static constexpr int kPartNumbers = 16;
    static constexpr int kOffset = 4;
    static constexpr bool kHasMinimum = false;
    static constexpr int kSixteens = 4;
    static constexpr int at(int half, int n) {
        return n < 2 ? offsetof(Block, qs) + 32 * half + 16 * n
                     : offsetof(Block, hmask) + 16 * (n - 2);
    }

    // Twelve bytes; sixteen from their first on would reach past the block.
    static __m128i scale_bytes(const Block& block) {
        return _mm_srli_si128(load16(block.scales - 2), 2);
    }

    static void unpack_scales(const Bytes (&packed)[4], std::uint8_t (*scales)[kBytes],
                              std::uint8_t (*)[kBytes]) {
        const Bytes a = packed[0], b = packed[1], c = packed[2];
        const auto put = [&](int i, Bytes low, Bytes high) {
            store(scales[i], less(either(low, high), 32));
        };
        put(0, moved<0x0f, 0>(a), moved<0x03, 4>(c));
        put(1, moved<0x0f, 0>(b), moved<0x0c, 2>(c));
        put(2, moved<0xf0, -4>(a), moved<0x30, 0>(c));
        put(3, moved<0xf0, -4>(b), moved<0xc0, -2>(c));
    }

    template <int Half, int I, typename Sixteen>
    static Bytes numbers(const Sixteen& sixteen) {
        constexpr int kBit = 4 * Half + I / 2;  // of hmask
        return either(WeightsQ2_K::numbers<Half, I>(sixteen),
                      moved<1 << kBit, 2 - kBit>(sixteen(2 + I % 2)));
    }
};

}  // namespace fermata::products

#endif
