// One or two rows on processors with AVX2, without panels: making them takes longer than the memory
// does. Eight columns at a time; the sums of a block are integers, so that a row's bits are those
// that panels give.
#pragma once

#include "kernels/panels_of_256.h"
#include "kernels/panels_of_32.h"
#include "kernels/weights_of_256.h"
#include "kernels/weights_of_32.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD) && !defined(__AVX512F__)

namespace fermata::products {

inline constexpr int kFewRows = 2;
inline constexpr int kFewColumns = kPanelColumns;

// Shorter columns, in bytes, are asked for in the order of the memory: in the order of their use,
// the processor would meet eight sequences that end too soon to be followed (Zen 3, columns of 612
// bytes: 1.25 times as long; of 1,632 bytes: the same; of 4,352 bytes, the order of the memory
// takes 1.3 times).
inline constexpr std::int64_t kShortColumn = 2048;

/** Blocks that will be needed kAheadBytes later. */
template <typename Block>
class Ahead {
   public:
    Ahead(const Block* first, std::int64_t blocks) {
        const auto bytes = static_cast<std::int64_t>(blocks * sizeof(Block));
        const std::int64_t tiles = (kAheadBytes + kFewColumns * bytes - 1) / (kFewColumns * bytes);
        ahead_ = first + tiles * kFewColumns * blocks;
        const bool is_short = bytes < kShortColumn;
        of_column_ = is_short ? 1 : blocks;
        of_block_ = is_short ? kFewColumns : 1;
    }

    /** At the use of block `b` of column `c`. */
    void prefetch(int c, std::int64_t b) const {
        prefetch_far(ahead_ + c * of_column_ + b * of_block_, sizeof(Block));
    }

   private:
    const Block* ahead_;
    std::int64_t of_column_, of_block_;
};

template <typename Weights>
struct FewRowsOf32 {
    static_assert(!Weights::kHasMinimum);
    using Block = typename Weights::Block;
    using RowBlock = typename PanelsOf32<Weights>::RowBlock;
    static constexpr int kRows = kFewRows;
    static constexpr int kColumns = kFewColumns;

    /** sums[r][c] = row r of the tile x column c; columns are `blocks` blocks long. */
    template <int R>
    static void multiply(const Block* first, std::int64_t blocks, const RowBlock* tile,
                         float (&sums)[R][kColumns]) {
        const Ahead<Block> ahead(first, blocks);
        simd::Vec of_rows[R] = {};
        for (std::int64_t b = 0; b < blocks; ++b, tile += R) {
            Bytes products[R][kColumns];
            ggml_fp16_t scales[kColumns];
#pragma GCC unroll 8
            for (int c = 0; c < kColumns; ++c) {
                const Block& block = first[c * blocks + b];
                ahead.prefetch(c, b);
                scales[c] = block.d;
                const Bytes numbers =
                    _mm256_set_m128i(Weights::numbers(block, 1), Weights::numbers(block, 0));
                for (int r = 0; r < R; ++r)
                    products[r][c] = Weights::add(zero(), numbers, load(tile[r].numbers));
            }
            const simd::Vec scale = simd::load(scales);
            for (int r = 0; r < R; ++r) {
                const Bytes all_of = plus(sums_of_eight(products[r]), all(tile[r].start));
                of_rows[r] = simd::fma(to_floats(all_of),
                                       simd::mul(scale, simd::all(tile[r].scale)), of_rows[r]);
            }
        }
        for (int r = 0; r < R; ++r)
            simd::store(sums[r], of_rows[r]);
    }
};

template <typename Weights>
struct FewRowsOf256 {
    using Panels = PanelsOf256<Weights>;
    using Block = typename Weights::Block;
    using RowBlock = typename Panels::RowBlock;
    static constexpr int kRows = kFewRows;
    static constexpr int kColumns = kFewColumns;

    template <int R>
    static void multiply(const Block* first, std::int64_t blocks, const RowBlock* tile,
                         float (&sums)[R][kColumns]) {
        const Ahead<Block> ahead(first, blocks);
        simd::Vec of_rows[R] = {};
        for (std::int64_t b = 0; b < blocks; ++b, tile += R) {
            typename Panels::PanelBlock parts;  // without numbers
            Panels::make_scales(first + b, blocks, parts);
            Bytes products[R][kColumns];
            for (int c = 0; c < kColumns; ++c) {
                ahead.prefetch(c, b);
                const __m128i scales = scales_of(parts, c);
                for (int r = 0; r < R; ++r)
                    products[r][c] = zero();
                add_half<0>(first[c * blocks + b], scales, tile, c, products);
                add_half<1>(first[c * blocks + b], scales, tile, c, products);
            }
            Bytes of_block[R];
            for (int r = 0; r < R; ++r)
                of_block[r] = sums_of_eight(products[r]);
            if constexpr (Weights::kOffset) Panels::subtract_offset(parts.scales, tile, of_block);
            Panels::add_block(parts, of_block, tile, of_rows);
        }
        for (int r = 0; r < R; ++r)
            simd::store(sums[r], of_rows[r]);
    }

   private:
    using Parts = typename Panels::PanelBlock;
    static constexpr int kHalfVectors = QK_K / 2 / kBytes;
    static constexpr bool kIsFine = Weights::kPartNumbers == 16;

    /** The scales of a column's parts, in order. */
    static __m128i scales_of(const Parts& parts, int column) {
        std::int32_t four[4] = {};
        for (int i = 0; i < Panels::kParts / 4; ++i)
            std::memcpy(&four[i], parts.scales[i] + 4 * column, sizeof(four[i]));
        return load16(four);
    }

    template <int Half, int R>
    static void add_half(const Block& block, __m128i scales, const RowBlock* tile, int column,
                         Bytes (&products)[R][kColumns]) {
        // What the panels' sixteens are for them, pairs of sixteens are here.
        const auto two_sixteens = [&](int n) {
            return load(reinterpret_cast<const char*>(&block) + Weights::at(Half, n));
        };
        const auto add = [&]<int I>(std::integral_constant<int, I>) {
            const Bytes numbers = Weights::template numbers<Half, 2 * I>(two_sixteens);
            constexpr int kVector = kHalfVectors * Half + I;
            const char place = static_cast<char>(kIsFine ? 2 * kVector : kVector);
            const __m128i places = _mm_set_epi64x(0x0101010101010101 * (place + (kIsFine ? 1 : 0)),
                                                  0x0101010101010101 * place);
            const Bytes scale = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(scales, places));
            for (int r = 0; r < R; ++r)
                products[r][column] = add_pairs(
                    products[r][column],
                    sums_of_two(numbers, load(tile[r].numbers + kBytes * kVector)), scale);
        };
        [&]<int... I>(std::integer_sequence<int, I...>) {
            (add(std::integral_constant<int, I>{}), ...);
        }(std::make_integer_sequence<int, kHalfVectors>{});
    }
};

}  // namespace fermata::products

#endif
