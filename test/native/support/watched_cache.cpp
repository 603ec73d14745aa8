#include "watched_cache.h"

#include <cstddef>
#include <vector>

namespace fermata::testing {

void WatchedCache::decode(SlotId slot, std::span<const Token> prompt, std::int32_t from,
                          std::int32_t to) {
    std::vector<BatchRow> rows;
    for (std::int32_t at = from; at < to; ++at)
        rows.push_back(
            {.token = prompt[static_cast<std::size_t>(at)], .position = at, .slot = slot});
    CHECK(audit.decode(rows) == DecodeStatus::kOk);
    retention.commit(slot, to - from);
}

void WatchedCache::compute(SlotId slot, std::span<const Token> prompt, std::int32_t position) {
    retention.plan(slot, prompt.subspan(static_cast<std::size_t>(position)));
    decode(slot, prompt, position, static_cast<std::int32_t>(prompt.size()));
    check();
}

void WatchedCache::check() const {
    CHECK_EQ(retention.check_integrity(), "");
    CHECK_EQ(audit.violation(), "");
    for (SlotId slot = 0; slot < backend.shape().slot_count; ++slot) {
        const auto tokens = retention.tokens(slot);
        CHECK(backend.content(slot) == std::vector<Token>(tokens.begin(), tokens.end()));
    }
}

}  // namespace fermata::testing
