// Weights in blocks of 32 numbers with one scale (weights_of_32.h).
//
// They are turned first: a panel has a column for each lane of a vector, unpacked to bytes, so that
// a vector holds four successive numbers of each column. Then a row's numbers are needed four at a
// time, the same in all lanes, and sums need no adding up across lanes. A panel serves all rows.
#pragma once

#include "kernels/bytes.h"
#include "kernels/simd.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD)

#include <algorithm>

#include "ggml-cpu-impl.h"
#include "kernels/product.h"
#include "quants.h"
#include "simd-mappings.h"

namespace fermata::products {

using namespace bytes;

inline constexpr int kBlock = 32;          // numbers
inline constexpr int kQuads = kBlock / 4;  // of four numbers, of a block
inline constexpr int kPanelColumns = simd::kLanes;
inline constexpr int kPartBlocks = 16;

// 32 numbers of a row.
struct RowBlock {
    float scale;
    float sum;           // of the numbers
    std::int32_t start;  // of a sum of products: what the offset of the weights amounts to
    std::int8_t numbers[kBlock];
};

/** 32 numbers from `x`, rounded as ggml rounds them to Q8_0. */
template <typename Weights>
RowBlock rounded(const float* x) {
    block_q8_0 block;
    quantize_row_q8_0(x, &block, kBlock);
    RowBlock row;
    int sum = 0;
    for (int i = 0; i < kBlock; ++i) {
        row.numbers[i] = block.qs[i];
        sum += block.qs[i];
    }
    row.scale = GGML_CPU_FP16_TO_FP32(block.d);
    row.sum = row.scale * static_cast<float>(sum);
    row.start = -Weights::kOffset * sum;
    return row;
}

template <typename Weights>
struct Panel {
    std::uint8_t* numbers;  // [block][quad][column][4]
    ggml_fp16_t* scales;    // [block][column]
    ggml_fp16_t* minima;    // [block][column]

    static std::size_t bytes(std::int64_t blocks) {
        return blocks *
               (kQuads * kBytes + (1 + Weights::kHasMinimum) * kPanelColumns * sizeof(ggml_fp16_t));
    }
    Panel(void* memory, int blocks)
        : numbers(static_cast<std::uint8_t*>(memory)),
          scales(reinterpret_cast<ggml_fp16_t*>(numbers + blocks * kQuads * kBytes)),
          minima(scales + blocks * kPanelColumns) {}
};

/**
 * Makes a panel of `count` columns' blocks from `begin` to `end`; the panel's other columns repeat
 * the last. `stride`: from a column to the next.
 */
template <typename Weights>
void make_panel(const typename Weights::Block* weights, std::int64_t stride, int count, int begin,
                int end, Panel<Weights> to) {
    const typename Weights::Block* columns[kPanelColumns];
    for (int c = 0; c < kPanelColumns; ++c)
        columns[c] = weights + std::min(c, count - 1) * stride;
    // The next panel's weights follow these.
    const char* next = reinterpret_cast<const char*>(weights + kPanelColumns * stride);
    constexpr int kPart = kPanelColumns * sizeof(typename Weights::Block);
    for (int b = begin; b < end; ++b) {
        // Into the second cache: the first would lose them again before they are used.
        prefetch<_MM_HINT_T1>(next + 1L * b * kPart, kPart);
        for (int half = 0; half < 2; ++half) {
            Bytes turned[4];
            for (int i = 0; i < 4; ++i)
                turned[i] = lanes_of(
                    [&](int lane) { return Weights::numbers(columns[i + 4 * lane][b], half); });
            turn_lanes(turned);
            for (int i = 0; i < 4; ++i, to.numbers += kBytes)
                store(to.numbers, turned[i]);
        }
        for (int c = 0; c < kPanelColumns; ++c) {
            *to.scales++ = columns[c][b].d;
            if constexpr (Weights::kHasMinimum) *to.minima++ = columns[c][b].m;
        }
    }
}

/** sums[r] += row r of the tile x each column of the panel. tile: [block][R]. */
template <typename Weights, int R>
void multiply_panel(Panel<Weights> panel, int blocks, const RowBlock* tile, simd::Vec (&sums)[R]) {
    for (int b = 0; b < blocks; ++b, tile += R) {
        Bytes products[R];
        for (int r = 0; r < R; ++r)
            products[r] = repeat4(&tile[r].start);
        for (int quad = 0; quad < kQuads; ++quad, panel.numbers += kBytes) {
            const Bytes weights = load(panel.numbers);
            for (int r = 0; r < R; ++r)
                products[r] =
                    Weights::add(products[r], weights, repeat4(tile[r].numbers + 4 * quad));
        }
        const simd::Vec scale = simd::load(panel.scales + b * kPanelColumns);
        for (int r = 0; r < R; ++r)
            sums[r] = simd::fma(to_floats(products[r]), simd::mul(scale, simd::all(tile[r].scale)),
                                sums[r]);
        if constexpr (Weights::kHasMinimum) {
            const simd::Vec minimum = simd::load(panel.minima + b * kPanelColumns);
            for (int r = 0; r < R; ++r)
                sums[r] = simd::fma(minimum, simd::all(tile[r].sum), sums[r]);
        }
    }
}

/** Writes the first `count` sums of each row to the rows from `first` on. */
template <int R>
void store_sums(const simd::Vec (&sums)[R], int count, const Rows& out, std::int64_t first,
                std::int64_t column) {
    for (int r = 0; r < R; ++r) {
        float all[kPanelColumns];
        simd::store(all, sums[r]);
        std::copy_n(all, count, out.at(first + r) + column);
    }
}

template <typename Weights>
struct BlocksOf32 {
    static constexpr std::int64_t kColumns = kPanelColumns;

    static std::size_t row_bytes(std::int64_t width) { return width / kBlock * sizeof(RowBlock); }

    static std::int64_t panels_at_once(std::int64_t width) {
        const auto bytes = static_cast<std::int64_t>(Panel<Weights>::bytes(width / kBlock));
        return std::max<std::int64_t>(1, kWeightBytes / bytes);
    }
    static std::size_t scratch_bytes(std::int64_t width) {
        return panels_at_once(width) * Panel<Weights>::bytes(width / kBlock);
    }

    static void round_rows(const Product& product, int thread, int threads) {
        auto* to = static_cast<RowBlock*>(product.rounded);
        const std::int64_t blocks = product.width / kBlock;
        each_block(product, kBlock, thread, threads,
                   [&](const float* from, std::int64_t row, std::int64_t b) {
                       const std::int64_t tile = row / kTileRows * kTileRows;
                       const std::int64_t rows =
                           std::min<std::int64_t>(kTileRows, product.row_count - tile);
                       to[tile * blocks + b * rows + row - tile] = rounded<Weights>(from);
                   });
    }

    static void run(const Product& product, std::int64_t begin, std::int64_t end, void* scratch) {
        const bool is_one_tile = product.row_count <= kTileRows;
        const std::int64_t step = (is_one_tile ? 1 : panels_at_once(product.width)) * kColumns;
        for (std::int64_t column = begin; column < end; column += step) {
            if (is_one_tile)
                run_tile(product, column, end, scratch);
            else
                run_tiles(product, column, std::min(column + step, end), scratch);
        }
    }

    static const typename Weights::Block* weights_at(const Product& product, std::int64_t column) {
        return static_cast<const typename Weights::Block*>(product.weights) +
               column * (product.width / kBlock);
    }

    // One panel, made and used in parts that stay in the fastest cache.
    static void run_tile(const Product& product, std::int64_t column, std::int64_t end,
                         void* scratch) {
        const auto blocks = static_cast<int>(product.width / kBlock);
        const auto count = static_cast<int>(std::min(kColumns, end - column));
        const auto* tile = static_cast<const RowBlock*>(product.rounded);
        with_rows(product.row_count, [&](auto rows) {
            simd::Vec sums[rows] = {};
            for (int b = 0; b < blocks; b += kPartBlocks) {
                const int part = std::min(kPartBlocks, blocks - b);
                const Panel<Weights> panel(scratch, part);
                make_panel(weights_at(product, column), blocks, count, b, b + part, panel);
                multiply_panel(panel, part, tile + b * rows, sums);
            }
            store_sums(sums, count, product.out, 0, column);
        });
    }

    // Panels that serve a tile of rows after the other.
    static void run_tiles(const Product& product, std::int64_t begin, std::int64_t end,
                          void* scratch) {
        const auto blocks = static_cast<int>(product.width / kBlock);
        const auto panel_at = [&](std::int64_t column) {
            return Panel<Weights>(static_cast<char*>(scratch) +
                                      (column - begin) / kColumns * Panel<Weights>::bytes(blocks),
                                  blocks);
        };
        const auto count_at = [&](std::int64_t column) {
            return static_cast<int>(std::min(kColumns, end - column));
        };
        for (std::int64_t column = begin; column < end; column += kColumns)
            make_panel(weights_at(product, column), blocks, count_at(column), 0, blocks,
                       panel_at(column));
        for (std::int64_t first = 0; first < product.row_count; first += kTileRows) {
            const auto* tile = static_cast<const RowBlock*>(product.rounded) + first * blocks;
            with_rows(std::min<std::int64_t>(kTileRows, product.row_count - first), [&](auto rows) {
                for (std::int64_t column = begin; column < end; column += kColumns) {
                    simd::Vec sums[rows] = {};
                    multiply_panel(panel_at(column), blocks, tile, sums);
                    store_sums(sums, count_at(column), product.out, first, column);
                }
            });
        }
    }
};

}  // namespace fermata::products

#endif
