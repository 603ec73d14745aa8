#include "core/micro_batches.h"

#include <algorithm>
#include <utility>

namespace fermata {
namespace {

// One pass of llama_batch_allocr::split_equal with sequential = true.
Pass take_pass(std::vector<SlotRows>& groups, std::int64_t micro_batch_rows) {
    std::size_t count = 1;
    std::int64_t fewest = groups[0].rows;
    // llama.cpp looks at the limit after it has added a slot, so one more than the limit fits.
    while (count < groups.size() && groups[count].slot == groups[count - 1].slot + 1 &&
           static_cast<std::int64_t>(count) <= micro_batch_rows) {
        fewest = std::min(fewest, groups[count].rows);
        ++count;
    }
    const auto slots = static_cast<std::int64_t>(count);
    const std::int64_t taken =
        std::min(fewest, std::max<std::int64_t>(micro_batch_rows / slots, 1));
    for (std::size_t i = 0; i < count; ++i)
        groups[i].rows -= taken;
    std::erase_if(groups, [](const SlotRows& group) { return group.rows == 0; });
    return {.slots = slots, .rows = slots * taken};
}

}  // namespace

std::vector<Pass> split_into_passes(std::vector<SlotRows> batch, const CacheShape& shape) {
    const std::int64_t micro_batch_rows = std::max(shape.micro_batch_rows, 1);
    std::vector<Pass> passes;
    if (shape.layout == CacheLayout::kStreams) {
        while (!batch.empty())
            passes.push_back(take_pass(batch, micro_batch_rows));
        return passes;
    }
    std::int64_t rows = 0;
    for (const SlotRows& group : batch)
        rows += group.rows;
    for (; rows > 0; rows -= micro_batch_rows)
        passes.push_back({.slots = static_cast<std::int64_t>(batch.size()),
                          .rows = std::min(rows, micro_batch_rows)});
    return passes;
}

int count_micro_batches(std::span<const BatchRow> rows, const CacheShape& shape) {
    std::vector<SlotRows> groups;
    for (const BatchRow& row : rows) {
        if (groups.empty() || groups.back().slot != row.slot) groups.push_back({row.slot, 0});
        ++groups.back().rows;
    }
    return static_cast<int>(split_into_passes(std::move(groups), shape).size());
}

}  // namespace fermata
