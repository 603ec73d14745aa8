// Matrix products by panels. A panel is the columns of weights that fill a vector's lanes, unpacked
// to bytes and turned, so that a vector holds four successive numbers of each column. Then a row's
// numbers are needed four at a time, the same in all lanes, and sums need no adding up across
// lanes. A panel is made once and serves all rows.
#pragma once

#include "kernels/bytes.h"
#include "kernels/simd.h"

#if defined(FERMATA_BYTES) && defined(FERMATA_SIMD)

#include <algorithm>

#include "kernels/product.h"

namespace fermata::products {

using namespace bytes;

inline constexpr int kPanelColumns = simd::kLanes;
// Of a panel that one tile of rows uses, so that a part of it stays in the fastest cache.
inline constexpr int kPartNumbers = 512;
// Of weights, that are asked for before they are needed. Less comes too late, and with twice as
// much two threads lose what they gain.
inline constexpr std::int64_t kAheadBytes = 16 * 1024;

/**
 * What a Format has:
 *   Block                  a block of weights as it lies in memory
 *   kNumbers, kBlockColumns   numbers that it has of a column, and columns
 *   RowBlock               as many numbers of a row, rounded
 *   PanelBlock             a block of each column of a panel
 *   round(numbers, to)     makes a RowBlock
 *   make(first, stride, next, to)   makes a PanelBlock from a block of each column, `stride` blocks
 *                          apart, and asks for as many bytes at `next`, which will be needed
 *   multiply(panel, blocks, tile, sums)   adds row r of the tile x each column to sums[r];
 *                          tile: [block][row]
 * FewRows does without a panel what Format does with one, bit for bit, for up to kRows rows.
 */
template <typename Format, typename FewRows = void>
struct Panels {
    using Block = typename Format::Block;
    using RowBlock = typename Format::RowBlock;
    using PanelBlock = typename Format::PanelBlock;

    static constexpr std::int64_t kColumns = kPanelColumns;
    static constexpr int kPartBlocks = kPartNumbers / Format::kNumbers;

    static std::size_t row_bytes(std::int64_t width) {
        return width / Format::kNumbers * sizeof(RowBlock);
    }
    static std::int64_t panels_at_once(std::int64_t width) {
        const auto bytes = static_cast<std::int64_t>(width / Format::kNumbers * sizeof(PanelBlock));
        return std::max<std::int64_t>(1, kWeightBytes / bytes);
    }
    static std::size_t scratch_bytes(std::int64_t width) {
        return panels_at_once(width) * (width / Format::kNumbers) * sizeof(PanelBlock);
    }

    static void round_rows(const Product& product, int thread, int threads) {
        auto* to = static_cast<RowBlock*>(product.rounded);
        const std::int64_t blocks = product.width / Format::kNumbers;
        const std::int64_t tiles = (product.row_count + kTileRows - 1) / kTileRows;
        const std::int64_t all = tiles * blocks;
        for (std::int64_t i = all * thread / threads; i < all * (thread + 1) / threads; ++i) {
            const std::int64_t first = i / blocks * kTileRows;
            const std::int64_t rows = std::min<std::int64_t>(kTileRows, product.row_count - first);
            const std::int64_t block = i % blocks;
            for (std::int64_t r = 0; r < rows; ++r)
                Format::round(product.in.at(first + r) + block * Format::kNumbers,
                              to[first * blocks + block * rows + r]);
        }
    }

    static void run(const Product& product, std::int64_t begin, std::int64_t end, void* scratch) {
        if constexpr (!std::is_void_v<FewRows>) {
            if (product.row_count <= FewRows::kRows) return run_few_rows(product, begin, end);
        }
        const bool is_one_tile = product.row_count <= kTileRows;
        const std::int64_t step = (is_one_tile ? 1 : panels_at_once(product.width)) * kColumns;
        for (std::int64_t column = begin; column < end; column += step) {
            if (is_one_tile)
                run_tile(product, column, static_cast<PanelBlock*>(scratch));
            else
                run_tiles(product, column, std::min(column + step, end),
                          static_cast<PanelBlock*>(scratch));
        }
    }

   private:
    /** Where the panel for `column` begins: the last one reaches back, for it has to be full. */
    static std::int64_t panel_begin(const Product& product, std::int64_t column) {
        return std::min(column, product.columns - kColumns);
    }

    /** The blocks from `begin` to `end` of the panel for `column`. */
    static void make_panel(const Product& product, std::int64_t column, int begin, int end,
                           PanelBlock* to) {
        const std::int64_t blocks = product.width / Format::kNumbers;
        const Block* first = static_cast<const Block*>(product.weights) +
                             panel_begin(product, column) / Format::kBlockColumns * blocks;
        constexpr int kPanelBlocks = kPanelColumns / Format::kBlockColumns;
        constexpr int kPanelBytes = kPanelBlocks * static_cast<int>(sizeof(Block));
        const std::int64_t panels =
            (kAheadBytes + blocks * kPanelBytes - 1) / (blocks * kPanelBytes);
        const Block* next = first + panels * kPanelBlocks * blocks;
        for (int b = begin; b < end; ++b)
            Format::make(first + b, blocks, next + b * kPanelBlocks, *to++);
    }

    /** Writes the sums of the panel for `column` to the rows from `first` on. */
    template <int R>
    static void store_sums(const simd::Vec (&sums)[R], const Product& product, std::int64_t first,
                           std::int64_t column) {
        const std::int64_t before = column - panel_begin(product, column);
        for (int r = 0; r < R; ++r) {
            float all[kPanelColumns];
            simd::store(all, sums[r]);
            std::copy(all + before, all + kPanelColumns, product.out.at(first + r) + column);
        }
    }

    static void run_few_rows(const Product& product, std::int64_t begin, std::int64_t end) {
        const std::int64_t blocks = product.width / Format::kNumbers;
        const auto* tile = static_cast<const RowBlock*>(product.rounded);
        constexpr std::int64_t kFew = FewRows::kColumns;
        with_rows<FewRows::kRows>(product.row_count, [&](auto rows) {
            for (std::int64_t column = begin; column < end; column += kFew) {
                const std::int64_t from = std::min(column, product.columns - kFew);
                float sums[rows][kFew];
                FewRows::multiply(static_cast<const Block*>(product.weights) +
                                      from / Format::kBlockColumns * blocks,
                                  blocks, tile, sums);
                for (int r = 0; r < rows; ++r)
                    std::copy(sums[r] + (column - from), sums[r] + kFew,
                              product.out.at(r) + column);
            }
        });
    }

    // A panel that is used as it is made.
    static void run_tile(const Product& product, std::int64_t column, PanelBlock* panel) {
        const auto blocks = static_cast<int>(product.width / Format::kNumbers);
        const auto* tile = static_cast<const RowBlock*>(product.rounded);
        with_rows(product.row_count, [&](auto rows) {
            simd::Vec sums[rows] = {};
            const int parts = (blocks + kPartBlocks - 1) / kPartBlocks;
            const int size = (blocks + parts - 1) / parts;
            for (int b = 0; b < blocks; b += size) {
                const int part = std::min(size, blocks - b);
                make_panel(product, column, b, b + part, panel);
                Format::multiply(panel, part, tile + b * rows, sums);
            }
            store_sums(sums, product, 0, column);
        });
    }

    // Panels that serve one tile of rows after the other.
    static void run_tiles(const Product& product, std::int64_t begin, std::int64_t end,
                          PanelBlock* panels) {
        const auto blocks = static_cast<int>(product.width / Format::kNumbers);
        const auto panel_at = [&](std::int64_t column) {
            return panels + (column - begin) / kColumns * blocks;
        };
        for (std::int64_t column = begin; column < end; column += kColumns)
            make_panel(product, column, 0, blocks, panel_at(column));
        for (std::int64_t first = 0; first < product.row_count; first += kTileRows) {
            const auto* tile = static_cast<const RowBlock*>(product.rounded) + first * blocks;
            with_rows(std::min<std::int64_t>(kTileRows, product.row_count - first), [&](auto rows) {
                for (std::int64_t column = begin; column < end; column += kColumns) {
                    simd::Vec sums[rows] = {};
                    Format::multiply(panel_at(column), blocks, tile, sums);
                    store_sums(sums, product, first, column);
                }
            });
        }
    }
};

}  // namespace fermata::products

#endif
