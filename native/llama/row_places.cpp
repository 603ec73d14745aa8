#include "llama/row_places.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "llama-batch.h"

namespace fermata {

namespace {

llama_ubatch next_pass(llama_batch_allocr& batch, const RowSplit& split) {
    const auto rows = static_cast<std::uint32_t>(split.shape.micro_batch_rows);
    const bool pooled = split.shape.layout == CacheLayout::kUnified;
    const std::uint32_t kept = split.undo_rows > 0 ? split.undo_rows + 1 : 0;
    if (split.is_recurrent) return batch.split_equal(rows, !pooled, kept);
    return pooled ? batch.split_simple(rows) : batch.split_equal(rows, true, 0);
}

// llama_context::decode's order of rows with logits, as it is reached: by a selection sort.
void reorder_as_llama(std::vector<std::size_t>& computed, std::vector<std::int32_t> outputs) {
    for (std::size_t i = 0; i + 1 < outputs.size(); ++i) {
        const auto first = outputs.begin() + static_cast<std::ptrdiff_t>(i);
        const auto least = std::min_element(first, outputs.end());
        if (least == first) continue;
        std::swap(computed[i], computed[static_cast<std::size_t>(least - outputs.begin())]);
        std::iter_swap(first, least);
    }
}

}  // namespace

std::vector<std::size_t> places_of(std::span<const BatchRow> rows, const llama_batch& batch,
                                   const llama_vocab* vocabulary, const RowSplit& split) {
    std::vector<std::size_t> places(rows.size());
    std::iota(places.begin(), places.end(), 0);
    if (rows.front().slot == rows.back().slot) return places;
    llama_batch_allocr passes(1);
    const bool pooled = split.shape.layout == CacheLayout::kUnified;
    const auto slots = pooled ? LLAMA_MAX_SEQ : static_cast<std::uint32_t>(split.shape.slot_count);
    if (!passes.init(batch, *vocabulary, nullptr, 0, slots, false)) return {};
    passes.split_reset();
    std::vector<std::size_t> computed;  // rows of the batch
    for (;;) {
        const llama_ubatch pass = next_pass(passes, split);
        if (pass.n_tokens == 0) break;
        for (std::uint32_t i = 0; i < pass.n_tokens; ++i) {
            const auto first =
                std::ranges::lower_bound(rows, pass.seq_id[i][0], {}, &BatchRow::slot);
            computed.push_back(
                static_cast<std::size_t>(first - rows.begin() + pass.pos[i] - first->position));
        }
    }
    if (computed.size() != rows.size()) return {};
    reorder_as_llama(computed, passes.get_out_ids());
    for (std::size_t place = 0; place < computed.size(); ++place)
        places[computed[place]] = place;
    return places;
}

}  // namespace fermata
