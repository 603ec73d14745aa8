#include "core/micro_batches.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fermata {
namespace {

struct Group {
    SlotId slot = kNoSlot;
    std::int64_t rows = 0;  // not yet in a pass
};

// One pass of llama_batch_allocr::split_equal with sequential = true.
void take_pass(std::vector<Group>& groups, std::int64_t micro_batch_rows) {
    std::size_t count = 1;
    std::int64_t fewest = groups[0].rows;
    // llama.cpp looks at the limit after it has added a slot, so one more than the limit fits.
    while (count < groups.size() && groups[count].slot == groups[count - 1].slot + 1 &&
           static_cast<std::int64_t>(count) <= micro_batch_rows) {
        fewest = std::min(fewest, groups[count].rows);
        ++count;
    }
    const auto limit = micro_batch_rows / static_cast<std::int64_t>(count);
    const std::int64_t taken = std::min(fewest, std::max<std::int64_t>(limit, 1));
    for (std::size_t i = 0; i < count; ++i)
        groups[i].rows -= taken;
    std::erase_if(groups, [](const Group& group) { return group.rows == 0; });
}

}  // namespace

int count_micro_batches(std::span<const BatchRow> rows, const CacheShape& shape) {
    const std::int64_t micro_batch_rows = std::max(shape.micro_batch_rows, 1);
    if (shape.layout == CacheLayout::kUnified) {
        const auto count = static_cast<std::int64_t>(rows.size());
        return static_cast<int>((count + micro_batch_rows - 1) / micro_batch_rows);
    }
    std::vector<Group> groups;
    for (const BatchRow& row : rows) {
        if (groups.empty() || groups.back().slot != row.slot) groups.push_back({row.slot, 0});
        ++groups.back().rows;
    }
    int passes = 0;
    while (!groups.empty()) {
        take_pass(groups, micro_batch_rows);
        ++passes;
    }
    return passes;
}

}  // namespace fermata
