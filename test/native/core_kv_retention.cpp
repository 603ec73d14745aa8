#include "core/kv_retention.h"

#include "check.h"
#include "fake_backend.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr Milliseconds kNoLease = 0;

CacheShape streams(std::int32_t slots) {
    return {.layout = CacheLayout::kStreams,
            .slot_count = slots,
            .cells_per_sequence = 1000,
            .max_rows = 1000,
            .micro_batch_rows = 128};
}

CacheShape unified(std::int32_t slots, std::int64_t cells = 10000) {
    return {.layout = CacheLayout::kUnified,
            .slot_count = slots,
            .cells_per_sequence = 1000,
            .cells_total = cells,
            .max_rows = 1000,
            .micro_batch_rows = 128};
}

// Texts of different kinds share nothing.
std::vector<Token> text(Token kind, int count) {
    return std::vector<Token>(static_cast<std::size_t>(count), kind);
}

std::vector<Token> operator+(std::vector<Token> a, const std::vector<Token>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// Retention over a fake backend, and the decoding that a scheduler would do.
struct Cache {
    FakeBackend backend;
    KvRetention retention;
    Milliseconds now = 1;

    explicit Cache(CacheShape shape) : backend(shape), retention(backend) {}

    void decode(SlotId slot, std::span<const Token> tokens) {
        if (tokens.empty()) return;
        std::vector<BatchRow> rows;
        std::int32_t position = retention.length(slot);
        for (const Token token : tokens)
            rows.push_back({.token = token, .position = position++, .slot = slot});
        CHECK(backend.decode(rows) == DecodeStatus::kOk);
        retention.commit(slot, static_cast<std::int32_t>(rows.size()));
    }
    void extend(SlotId slot, const std::vector<Token>& tokens) {
        retention.plan(slot, tokens);
        decode(slot, tokens);
    }
    // A running slot that holds the whole prompt.
    Placement run(const std::vector<Token>& prompt) {
        const auto placement = retention.acquire(prompt, ++now);
        CHECK(placement.has_value());
        extend(placement->slot, {prompt.begin() + placement->reused, prompt.end()});
        check();
        return *placement;
    }
    Placement run_and_retain(const std::vector<Token>& prompt,
                             Milliseconds lease_until = kNoLease) {
        const Placement placement = run(prompt);
        retention.retain(placement.slot, ++now, lease_until);
        check();
        return placement;
    }
    void check() const {
        CHECK_EQ(retention.check_integrity(), "");
        const std::int32_t slots = backend.shape().slot_count;
        for (SlotId slot = 0; slot < slots; ++slot) {
            const auto tokens = retention.tokens(slot);
            CHECK(backend.content(slot) == std::vector<Token>(tokens.begin(), tokens.end()));
        }
    }
    SlotState state(SlotId slot) const { return retention.state(slot); }
};

}  // namespace

TEST(a_new_prompt_gets_a_free_slot) {
    for (const CacheShape& shape : {streams(3), unified(3)}) {
        Cache cache(shape);
        const Placement placement = cache.run(text('a', 50));
        CHECK_EQ(placement.slot, 0);
        CHECK_EQ(placement.reused, 0);
        CHECK_EQ(cache.retention.length(0), 50);
        CHECK(cache.state(0) == SlotState::kRunning);
    }
}

TEST(a_slot_whose_content_is_a_prefix_is_taken_over) {
    for (const CacheShape& shape : {streams(3), unified(3)}) {
        for (const Milliseconds lease : {kNoLease, Milliseconds{1000}}) {
            Cache cache(shape);
            cache.run_and_retain(text('a', 50), lease);
            const Placement placement = cache.run(text('a', 50) + text('b', 10));
            CHECK_EQ(placement.slot, 0);
            CHECK_EQ(placement.reused, 50);
            CHECK(!placement.copied);
            CHECK_EQ(cache.retention.retained_slots(), 0);
        }
    }
}

TEST(a_slot_that_goes_on_a_little_behind_the_prefix_is_taken_over) {
    const auto slot_of_next = [](const CacheShape& shape, int prefix, int end, Milliseconds lease) {
        Cache cache(shape);
        cache.run_and_retain(text('s', prefix) + text('a', end), lease);
        const Placement next = cache.run(text('s', prefix) + text('b', 10));
        CHECK_EQ(next.reused, prefix);
        return next.slot;
    };
    CHECK_EQ(slot_of_next(streams(3), 960, 14, kNoLease), 0);
    CHECK_EQ(slot_of_next(streams(3), 960, 15, kNoLease), 1);
    CHECK_EQ(slot_of_next(streams(3), 960, 14, 1000), 1);
    CHECK_EQ(slot_of_next(unified(3), 960, 14, kNoLease), 1);
}

TEST(the_last_token_of_a_prompt_is_always_decoded) {
    Cache cache(streams(3));
    cache.run_and_retain(text('a', 50));
    const Placement placement = cache.run(text('a', 50));
    CHECK_EQ(placement.slot, 0);
    CHECK_EQ(placement.reused, 49);
    CHECK_EQ(cache.retention.lookup(text('a', 20)).resident, 19);
    CHECK_EQ(cache.retention.lookup(text('a', 1)).resident, 0);
}

TEST(a_shared_prefix_is_copied_and_its_provider_stays) {
    for (const CacheShape& shape : {streams(3), unified(3)}) {
        Cache cache(shape);
        cache.run_and_retain(text('s', 50) + text('a', 10));
        const Placement placement = cache.run(text('s', 50) + text('b', 10));
        CHECK_EQ(placement.slot, 1);
        CHECK_EQ(placement.reused, 50);
        CHECK(placement.copied);
        CHECK_EQ(cache.retention.length(0), 60);
        CHECK_EQ(cache.retention.copies(), shape.layout == CacheLayout::kStreams ? 1 : 0);
    }
}

TEST(a_prefix_is_copied_from_a_running_and_from_a_held_slot) {
    for (const CacheShape& shape : {streams(3), unified(3)}) {
        Cache cache(shape);
        cache.run(text('s', 50) + text('a', 10));
        CHECK_EQ(cache.run(text('s', 50) + text('b', 10)).reused, 50);
        cache.retention.hold(0, 1000);
        cache.retention.hold(1, 1000);
        CHECK_EQ(cache.run(text('s', 50) + text('b', 20)).reused, 60);
        CHECK_EQ(cache.retention.length(1), 60);
    }
}

TEST(streams_do_not_copy_small_prefixes) {
    const auto small = text('s', kMinCopiedPositions - 1), enough = text('s', kMinCopiedPositions);
    Cache cache(streams(4));
    cache.run_and_retain(small + text('a', 10));
    CHECK_EQ(cache.run(small + text('b', 10)).reused, 0);
    Cache larger(streams(4));
    larger.run_and_retain(enough + text('a', 10));
    CHECK_EQ(larger.run(enough + text('b', 10)).reused, kMinCopiedPositions);
    Cache shared(unified(4));
    shared.run_and_retain(small + text('a', 10));
    CHECK_EQ(shared.run(small + text('b', 10)).reused, kMinCopiedPositions - 1);
}

TEST(a_copy_that_gains_little_over_taking_over_is_not_made) {
    Cache cache(streams(4));
    cache.run_and_retain(text('s', 50));
    const SlotId longer = cache.run(text('s', 40) + text('x', 5)).slot;
    cache.retention.drop(longer);
    const SlotId running = cache.run(text('s', 60)).slot;
    CHECK_EQ(running, 0);
    cache.retention.retain(cache.run(text('s', 45) + text('y', 1)).slot, ++cache.now, kNoLease);
    const Placement placement = cache.run(text('s', 45) + text('y', 1) + text('z', 9));
    CHECK_EQ(placement.reused, 46);
    CHECK(!placement.copied);
}

TEST(free_slots_come_before_eviction_and_the_oldest_goes_first) {
    for (const CacheShape& shape : {streams(3), unified(3)}) {
        Cache cache(shape);
        for (const Token kind : {'a', 'b', 'c'})
            cache.run_and_retain(text(kind, 50));
        CHECK_EQ(cache.retention.evictions(), 0);
        cache.run(text('a', 50) + text('x', 1));
        cache.retention.retain(0, ++cache.now, kNoLease);
        cache.run_and_retain(text('d', 50));
        CHECK_EQ(cache.retention.evictions(), 1);
        CHECK_EQ(cache.retention.lookup(text('b', 50)).resident, 0);
        CHECK_EQ(cache.retention.lookup(text('c', 51)).resident, 50);
        CHECK_EQ(cache.retention.lookup(text('a', 51)).resident, 50);
    }
}

TEST(retained_slots_go_before_leased_ones) {
    for (const CacheShape& shape : {streams(2), unified(2)}) {
        Cache cache(shape);
        cache.run_and_retain(text('a', 50), 100000);
        cache.run_and_retain(text('b', 50));
        cache.run_and_retain(text('c', 50), 100000);
        CHECK_EQ(cache.retention.lookup(text('a', 51)).resident, 50);
        CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 0);
        cache.run(text('d', 50));
        CHECK_EQ(cache.retention.lookup(text('a', 51)).resident, 0);
        CHECK_EQ(cache.retention.lookup(text('c', 51)).resident, 50);
    }
}

TEST(a_provider_is_not_evicted_for_its_own_copy) {
    Cache cache(unified(2));
    cache.run_and_retain(text('s', 50) + text('a', 10));
    cache.run_and_retain(text('b', 50));
    const Placement placement = cache.run(text('s', 50) + text('c', 10));
    CHECK_EQ(placement.reused, 50);
    CHECK_EQ(cache.retention.length(0), 60);
    CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 0);
}

TEST(a_provider_counts_as_recently_used) {
    Cache cache(unified(3));
    cache.run_and_retain(text('s', 50) + text('a', 10));
    cache.run_and_retain(text('b', 50));
    cache.retention.drop(cache.run(text('s', 50) + text('c', 10)).slot);
    cache.run(text('d', 50));
    cache.run(text('e', 50));
    CHECK_EQ(cache.retention.lookup(text('s', 51)).resident, 50);
    CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 0);
}

TEST(what_another_slot_has_too_is_not_lost) {
    for (const CacheShape& shape : {streams(3), unified(3)}) {
        Cache cache(shape);
        cache.run(text('s', 100) + text('a', 20));
        cache.run_and_retain(text('b', 60));
        cache.run_and_retain(text('s', 100) + text('c', 30));
        cache.run(text('d', 50));
        CHECK_EQ(cache.retention.lookup(text('b', 61)).resident, 60);
        CHECK_EQ(cache.retention.lookup(text('s', 101)).resident, 100);
        CHECK_EQ(cache.retention.evictions(), 1);
    }
}

TEST(at_stake_is_what_no_other_slot_has) {
    for (const CacheShape& shape : {streams(2), unified(2)}) {
        Cache cache(shape);
        const auto first = text('s', 200) + text('a', 100);
        const Placement placement = cache.run_and_retain(first);
        cache.run_and_retain(text('s', 200) + text('b', 100));
        CHECK_EQ(cache.retention.at_stake(text('s', 200) + text('c', 50)).slot, kNoSlot);
        const Stake stake = cache.retention.at_stake(first + text('c', 50));
        CHECK_EQ(stake.slot, placement.slot);
        CHECK_EQ(stake.positions, 300);
    }
}

TEST(others_lose_only_what_they_do_not_share) {
    for (const CacheShape& shape : {streams(2), unified(2)}) {
        Cache cache(shape);
        const auto first = text('s', 200) + text('a', 90);
        const auto second = text('s', 200) + text('b', 100);
        for (int turn = 0; turn < 2; ++turn) {
            cache.run_and_retain(first + text('d', 10 * turn));
            cache.run_and_retain(second + text('d', 10 * turn));
        }
        const Promise newcomer = cache.retention.lookup(text('c', 50));
        CHECK_EQ(cache.retention.rows_that_others_lose(newcomer), 100);
    }
}

TEST(a_provider_counts_as_used_when_its_copy_will_not_stay) {
    Cache cache(unified(3));
    cache.run_and_retain(text('s', 50) + text('a', 10));
    cache.run_and_retain(text('b', 60));
    const auto copy = cache.retention.acquire(text('s', 50) + text('c', 10), ++cache.now, 0, false);
    CHECK_EQ(copy->reused, 50);
    cache.retention.drop(copy->slot);
    cache.run(text('d', 50));
    cache.run(text('e', 50));
    CHECK_EQ(cache.retention.lookup(text('s', 51)).resident, 50);
    CHECK_EQ(cache.retention.lookup(text('b', 61)).resident, 0);
}

TEST(the_last_evictable_slot_is_truncated_and_taken_over) {
    for (const CacheShape& shape : {streams(2), unified(2)}) {
        Cache cache(shape);
        cache.run_and_retain(text('s', 50) + text('a', 10));
        cache.run(text('x', 10));
        const Placement placement = cache.run(text('s', 50) + text('b', 10));
        CHECK_EQ(placement.slot, 0);
        CHECK_EQ(placement.reused, 50);
        CHECK(!placement.copied);
        CHECK(!cache.retention.acquire(text('s', 60), ++cache.now));
    }
}

TEST(lookup_promises_what_running_slots_will_hold) {
    Cache cache(streams(3));
    const auto prompt = text('s', 100) + text('a', 10);
    const SlotId slot = cache.retention.acquire(prompt, 1)->slot;
    cache.retention.plan(slot, prompt);
    const auto other = text('s', 100) + text('b', 10);
    Promise promise = cache.retention.lookup(other);
    CHECK_EQ(promise.resident, 0);
    CHECK_EQ(promise.promised, 100);
    CHECK_EQ(promise.provider, slot);
    cache.decode(slot, std::span(prompt).first(40));
    CHECK_EQ(cache.retention.lookup(other).resident, 40);
    CHECK_EQ(cache.retention.lookup(other).promised, 100);
    cache.retention.forget_planned(slot);
    promise = cache.retention.lookup(other);
    CHECK_EQ(promise.promised, 40);
    CHECK_EQ(promise.provider, slot);
    cache.check();
}

TEST(models_that_cannot_truncate_reuse_whole_slots_only) {
    CacheShape shape = streams(4);
    shape.partial_truncate = false;
    Cache cache(shape);
    cache.run_and_retain(text('s', 50));
    CHECK_EQ(cache.retention.lookup(text('s', 50)).resident, 0);
    CHECK_EQ(cache.retention.lookup(text('s', 40) + text('x', 9)).resident, 0);
    CHECK_EQ(cache.run(text('s', 40) + text('x', 9)).reused, 0);
    CHECK_EQ(cache.retention.lookup(text('s', 51)).resident, 50);
    const Placement placement = cache.run(text('s', 51));
    CHECK_EQ(placement.reused, 50);
    CHECK_EQ(placement.slot, 0);
    CHECK_EQ(cache.retention.copies(), 0);
    CHECK_EQ(cache.run(text('s', 52)).reused, 51);  // slot 0 runs
    CHECK_EQ(cache.retention.copies(), 1);
}

TEST(running_slots_are_placed_side_by_side) {
    Cache cache(streams(6));
    for (const Token kind : {'a', 'b', 'c', 'd'})
        cache.run(text(kind, 50));
    cache.retention.drop(0);
    cache.retention.drop(1);
    CHECK_EQ(cache.run(text('e', 50)).slot, 1);
    CHECK_EQ(cache.run(text('f', 50)).slot, 0);
}

TEST(among_equal_places_the_one_beside_held_slots_is_taken) {
    Cache cache(streams(6));
    for (const Token kind : {'a', 'b', 'c', 'd'})
        cache.run(text(kind, 50));
    cache.retention.hold(3, 1000);
    for (const SlotId slot : {0, 1, 2})
        cache.retention.drop(slot);
    CHECK_EQ(cache.run(text('e', 50)).slot, 2);
}

TEST(retained_tokens_make_room_beside_the_running_slots) {
    Cache cache(streams(4));
    cache.run(text('a', 50));
    cache.run_and_retain(text('b', 50));
    const Placement placement = cache.run(text('c', 50));
    CHECK_EQ(placement.slot, 1);
    CHECK(!placement.copied);
    CHECK_EQ(cache.retention.lookup(text('b', 51)).provider, 2);
    CHECK_EQ(cache.retention.copies(), 1);
    CHECK_EQ(cache.retention.evictions(), 0);
}

TEST(what_makes_room_replaces_the_oldest_when_no_slot_is_free) {
    Cache cache(streams(4));
    const SlotId first = cache.run(text('a', 50)).slot;
    for (const Token kind : {'b', 'c', 'd'})
        cache.run_and_retain(text(kind, 50));
    const SlotId beside = cache.retention.lookup(text('d', 51)).provider;
    CHECK_EQ(beside, first + 1);  // the latest
    CHECK_EQ(cache.run(text('e', 50)).slot, beside);
    CHECK_EQ(cache.retention.lookup(text('d', 51)).resident, 50);
    CHECK_EQ(cache.retention.lookup(text('c', 51)).resident, 50);
    CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 0);
    CHECK_EQ(cache.retention.evictions(), 1);
}

TEST(a_slot_taken_over_moves_beside_the_running_ones) {
    Cache cache(streams(5));
    cache.run(text('a', 50));
    const SlotId gap = cache.run(text('b', 50)).slot;
    cache.run_and_retain(text('c', 50));
    cache.retention.drop(gap);
    const Placement placement = cache.run(text('c', 60));
    CHECK_EQ(placement.slot, gap);
    CHECK_EQ(placement.reused, 50);
    CHECK(placement.copied);
    CHECK(cache.state(2) == SlotState::kFree);
}

// No slot is free, so what rests in slot 1 takes the place of what runs there.
TEST(slots_change_places_where_none_is_free) {
    Cache cache(streams(4));
    for (const Token kind : {'a', 'b', 'c', 'd'})
        cache.run(text(kind, 50));
    for (const SlotId slot : {1, 2, 3})
        cache.retention.retain(slot, ++cache.now, kNoLease);
    const Placement placement = cache.run(text('d', 60));
    CHECK_EQ(placement.slot, 1);
    CHECK_EQ(placement.reused, 50);
    CHECK(placement.copied);
    CHECK(cache.retention.moved_bytes() > 0);
    CHECK(cache.state(3) == SlotState::kRetained);
    CHECK(cache.backend.content(3) == text('b', 50));
    CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 50);
    CHECK_EQ(cache.retention.lookup(text('c', 51)).resident, 50);
    CHECK_EQ(cache.retention.evictions(), 0);
}

TEST(slots_that_cannot_be_saved_do_not_change_places) {
    Cache cache(streams(4));
    for (const Token kind : {'a', 'b', 'c', 'd'})
        cache.run(text(kind, 50));
    for (const SlotId slot : {1, 2, 3})
        cache.retention.retain(slot, ++cache.now, kNoLease);
    cache.backend.refuse_saves();
    CHECK_EQ(cache.run(text('d', 60)).slot, 3);
    CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 50);
    CHECK_EQ(cache.retention.evictions(), 0);
}

TEST(what_cannot_be_put_back_when_slots_change_places_is_lost) {
    Cache cache(streams(4));
    for (const Token kind : {'a', 'b', 'c', 'd'})
        cache.run(text(kind, 50));
    for (const SlotId slot : {1, 2, 3})
        cache.retention.retain(slot, ++cache.now, kNoLease);
    cache.backend.refuse_restores();
    CHECK_EQ(cache.run(text('d', 60)).reused, 50);
    CHECK_EQ(cache.retention.lookup(text('b', 51)).resident, 0);
    CHECK_EQ(cache.retention.lookup(text('c', 51)).resident, 50);
    CHECK_EQ(cache.retention.evictions(), 1);
}

TEST(a_resumed_slot_moves_beside_the_running_ones) {
    Cache cache(streams(4));
    cache.run(text('a', 50));
    cache.run(text('b', 50));
    cache.run(text('c', 50));
    cache.retention.hold(2, 1000);
    cache.retention.drop(1);
    CHECK_EQ(cache.retention.resume(2), 1);
    cache.check();
    CHECK(cache.state(1) == SlotState::kRunning);
    CHECK(cache.state(2) == SlotState::kFree);
    CHECK(cache.backend.content(1) == text('c', 50));
    CHECK_EQ(cache.retention.copies(), 1);
}

TEST(a_resumed_slot_stays_when_no_free_or_retained_place_is_better) {
    Cache cache(streams(4));
    for (const Token kind : {'a', 'b', 'c', 'd'})
        cache.run(text(kind, 50));
    cache.retention.hold(3, 1000);
    cache.retention.retain(1, ++cache.now, 1000);  // leased
    cache.retention.hold(2, 1000);
    CHECK_EQ(cache.retention.resume(3), 3);
    CHECK_EQ(cache.retention.resume(2), 2);
    cache.check();
    Cache shared(unified(4));
    for (const Token kind : {'a', 'b', 'c'})
        shared.run(text(kind, 50));
    shared.retention.drop(1);
    shared.retention.hold(2, 1000);
    CHECK_EQ(shared.retention.resume(2), 2);
    CHECK_EQ(cache.retention.copies() + shared.retention.copies(), 0);
}

TEST(unified_cells_are_counted_by_who_refers_to_them) {
    Cache cache(unified(4, 200));
    cache.run(text('s', 50) + text('a', 10));
    cache.run(text('s', 50) + text('b', 10));
    CHECK_EQ(cache.retention.cells().used, 70);
    CHECK_EQ(cache.retention.cells().free, 130);
    cache.retention.retain(0, ++cache.now, kNoLease);
    CHECK_EQ(cache.retention.cells().used, 60);
    CHECK_EQ(cache.retention.cells().retained, 10);
    cache.retention.retain(1, ++cache.now, 1000);
    CHECK_EQ(cache.retention.cells().used, 0);
    CHECK_EQ(cache.retention.cells().retained, 70);
    cache.retention.drop(0);
    CHECK_EQ(cache.retention.cells().retained, 60);
    cache.retention.clear_retained();
    CHECK_EQ(cache.retention.cells().free, 200);
    cache.check();
}

TEST(ensure_cells_evicts_only_what_frees_cells) {
    Cache cache(unified(6, 200));
    cache.run_and_retain(text('s', 50));
    cache.run(text('s', 50) + text('a', 10));
    cache.retention.hold(0, 1000);
    cache.run_and_retain(text('s', 50) + text('b', 1));  // oldest; frees its last cell
    cache.run_and_retain(text('c', 60), 1000);           // leased: goes last
    cache.run_and_retain(text('d', 60));
    CHECK_EQ(cache.retention.cells().free, 19);
    CHECK(!cache.retention.ensure_cells(141));
    CHECK_EQ(cache.retention.evictions(), 0);
    CHECK(cache.retention.ensure_cells(70));
    CHECK_EQ(cache.retention.cells().free, 80);
    CHECK_EQ(cache.retention.evictions(), 2);
    CHECK_EQ(cache.retention.lookup(text('c', 61)).resident, 60);
    CHECK(cache.retention.ensure_cells(140));
    CHECK_EQ(cache.retention.lookup(text('c', 61)).resident, 0);
    cache.check();

    Cache pinned(unified(3, 200));
    pinned.run(text('s', 50) + text('a', 50));
    const SlotId inside = pinned.retention.acquire(text('s', 51), ++pinned.now)->slot;
    pinned.retention.retain(inside, ++pinned.now, kNoLease);  // all its cells are in use anyway
    pinned.run_and_retain(text('b', 60));
    CHECK(pinned.retention.ensure_cells(100));
    CHECK(pinned.state(inside) == SlotState::kRetained);
    CHECK_EQ(pinned.retention.evictions(), 1);
    CHECK(Cache(streams(2)).retention.ensure_cells(1 << 30));
}

TEST(leases_end_and_the_furthest_hold_is_given_up_first) {
    Cache cache(streams(4));
    for (const Token kind : {'a', 'b', 'c'})
        cache.run(text(kind, 50));
    CHECK_EQ(cache.retention.eviction_victim_among_held(), kNoSlot);
    cache.retention.hold(0, 100);
    cache.retention.hold(1, 300);
    cache.retention.retain(2, 1, 200);
    CHECK_EQ(cache.retention.eviction_victim_among_held(), 1);
    cache.retention.end_leases(199);
    CHECK(cache.state(2) == SlotState::kLeased);
    cache.retention.end_leases(200);
    CHECK(cache.state(2) == SlotState::kRetained);
    CHECK(cache.state(0) == SlotState::kHeld);
    cache.check();
}

TEST(a_slot_without_tokens_is_not_retained) {
    Cache cache(streams(2));
    const SlotId slot = cache.retention.acquire(text('a', 10), 1)->slot;
    cache.retention.plan(slot, text('a', 10));
    cache.retention.retain(slot, 2, kNoLease);
    CHECK(cache.state(slot) == SlotState::kFree);
    cache.check();
}

TEST_MAIN()
