// Retention over a fake backend that is watched, and the decoding that a scheduler would do.
#pragma once

#include <cstdint>
#include <span>

#include "check.h"
#include "core/audit_backend.h"
#include "core/kv_retention.h"
#include "fake_backend.h"
#include "scheduler_world.h"

namespace fermata::testing {

constexpr std::int64_t kPlenty = std::int64_t{1} << 30;
constexpr auto kCellBytes = static_cast<std::int64_t>(sizeof(Cell));

struct WatchedCache {
    FakeBackend backend;
    AuditBackend audit;
    KvRetention retention;
    Milliseconds now = 1;

    template <typename... Limits>
    explicit WatchedCache(CacheShape shape, Limits... limits)
        : backend(shape), audit(backend), retention(audit, limits...) {}

    // Decodes [from, to) of the prompt in one call.
    void decode(SlotId slot, std::span<const Token> prompt, std::int32_t from, std::int32_t to);
    // What follows the first positions of the prompt.
    void compute(SlotId slot, std::span<const Token> prompt, std::int32_t position);
    void check() const;
};

inline CacheShape without_cuts(CacheShape shape) {
    shape.partial_truncate = false;
    return shape;
}

inline CacheShape stand_alone(CacheShape shape) {
    shape.partial_truncate = false;
    shape.forks_stand_alone = true;
    return shape;
}

inline const auto kShapes = {streams(2, 512, 512), unified(2, 1024, 512, 512),
                             without_cuts(streams(2, 512, 512)), stand_alone(streams(2, 512, 512))};

}  // namespace fermata::testing
