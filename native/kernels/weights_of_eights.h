// Types of weights that ggml repacks as it loads a model: blocks of 32 numbers of eight columns lie
// together, eight bytes of each column in turn. number = scale * (byte - kOffset).
#pragma once

#include "kernels/bytes.h"

#ifdef FERMATA_BYTES

#include "ggml-cpu-impl.h"
#include "kernels/panels_of_32.h"
#include "repack.h"
#include "simd-mappings.h"

namespace fermata::products {

using namespace bytes;

// Unpack::numbers(nibbles): bytes from 0 to 15 as numbers.
template <typename Unpack, typename PackedBlock>
struct WeightsOfEights : Unpack {
    using Block = PackedBlock;
    static constexpr int kBlockColumns = 8;
    static constexpr bool kHasMinimum = false;

    template <typename PanelBlock>
    static void make(const Block* first, std::int64_t stride, PanelBlock& to) {
        constexpr bool kIsTwo = kPanelColumns == 2 * kBlockColumns;
        for (int part = 0; part < 2; ++part) {
            const auto* bytes = reinterpret_cast<const std::uint8_t*>(first->qs) + 64 * part;
            const auto* more =
                kIsTwo ? reinterpret_cast<const std::uint8_t*>(first[stride].qs) + 64 * part
                       : bytes + kBytes;
            const Bytes a = load(bytes), b = load(more);
            put(even_lanes(a, b), 2 * part, to);
            put(odd_lanes(a, b), 2 * part + 1, to);
        }
        for (int c = 0; c < kPanelColumns; ++c)
            to.scales[c] = Unpack::scale(first[c / kBlockColumns * stride], c % kBlockColumns);
    }

   private:
    template <typename PanelBlock>
    static void put(Bytes packed, int quad, PanelBlock& to) {
        store(to.numbers[quad], Unpack::numbers(low_nibbles(packed)));
        store(to.numbers[quad + 4], Unpack::numbers(high_nibbles(packed)));
    }
};

// ggml turns the highest bit of each four over.
struct UnpackQ4_0 {
    using Scale = ggml_fp16_t;
    static constexpr int kOffset = 8;
    static constexpr int kMost = 15;
    static Bytes numbers(Bytes nibbles) { return flipped(nibbles, 0x08); }
    static Bytes add(Bytes sums, Bytes weights, Bytes row) {
        return add_products(sums, weights, row);
    }
    static Scale scale(const block_q4_0x8& block, int column) { return block.d[column]; }
};

struct UnpackIQ4_NL {
    static constexpr std::int8_t kNumbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};
    using Scale = ggml_fp16_t;
    static constexpr int kOffset = kSignedOffset;
    static constexpr int kMost = 0;
    static Bytes numbers(Bytes nibbles) {
        return flipped(looked_up(kNumbers, nibbles), static_cast<char>(kSignedOffset));
    }
    static Bytes add(Bytes sums, Bytes weights, Bytes row) {
        return add_signed_products(sums, weights, row);
    }
    static Scale scale(const block_iq4_nlx8& block, int column) { return block.d[column]; }
};

struct UnpackMXFP4 {
    // Twice what the format's four bits mean; the scale is a half of the format's.
    static constexpr std::int8_t kNumbers[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                 0, -1, -2, -3, -4, -6, -8, -12};
    using Scale = float;  // has more bits of exponent than 16-bit floats
    static constexpr int kOffset = 12;
    static constexpr int kMost = 24;
    static Bytes numbers(Bytes nibbles) { return less(looked_up(kNumbers, nibbles), -kOffset); }
    static Bytes add(Bytes sums, Bytes weights, Bytes row) {
        return add_products(sums, weights, row);
    }
    static Scale scale(const block_mxfp4x8& block, int column) {
        return GGML_CPU_E8M0_TO_FP32_HALF(block.e[column]);
    }
};

using WeightsQ4_0 = WeightsOfEights<UnpackQ4_0, block_q4_0x8>;
using WeightsIQ4_NL = WeightsOfEights<UnpackIQ4_NL, block_iq4_nlx8>;
using WeightsMXFP4 = WeightsOfEights<UnpackMXFP4, block_mxfp4x8>;

}  // namespace fermata::products

#endif
