// What leaves a slot for RAM, and comes back from there.
#include "watched_cache.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

struct Cache : WatchedCache {
    explicit Cache(CacheShape shape, std::int64_t ram = kPlenty) : WatchedCache(shape, ram) {}

    Placement run(const std::vector<Token>& prompt, bool kept = true) {
        const auto placement = retention.acquire(prompt, ++now, 0, kept);
        CHECK(placement.has_value());
        compute(placement->slot, prompt, placement->reused);
        return *placement;
    }
    Placement run_and_retain(const std::vector<Token>& prompt, Milliseconds lease = 0) {
        const Placement placement = run(prompt);
        retention.retain(placement.slot, ++now, lease);
        check();
        return placement;
    }
};

}  // namespace

TEST(what_is_evicted_comes_back_from_ram) {
    for (const CacheShape& shape : kShapes) {
        Cache cache(shape);
        for (const std::uint32_t seed : {1u, 2u, 3u})
            cache.run_and_retain(words(seed, 100));
        CHECK_EQ(cache.retention.ram().sequences, 1);
        CHECK_EQ(cache.retention.ram().bytes, 100 * kCellBytes);
        CHECK_EQ(cache.retention.lookup(joined(words(1, 100), words(9, 5))).resident, 100);
        const Placement back = cache.run(joined(words(1, 100), words(9, 5)));
        CHECK_EQ(back.reused, 100);
        CHECK_EQ(cache.retention.ram().restores, 1);
        // The one that made room for it is there now.
        CHECK_EQ(cache.retention.ram().sequences, 1);
        CHECK_EQ(cache.retention.lookup(joined(words(2, 100), words(9, 5))).resident, 100);
    }
}

// In every step, of each prompt that waits.
TEST(a_slot_is_measured_once_while_it_rests) {
    for (const CacheShape& shape : {streams(2, 512, 256), unified(2, 600, 512, 256)}) {
        Cache cache(shape, 150 * kCellBytes);
        const auto first = words(1, 200);
        const Placement placement = cache.run_and_retain(first);
        cache.run_and_retain(words(2, 200));
        const auto asked = [&] {
            const int before = cache.backend.sizes_asked;
            CHECK_EQ(cache.retention.at_stake(joined(first, words(3, 50))).slot, placement.slot);
            return cache.backend.sizes_asked - before;
        };
        CHECK_EQ(asked(), 1);
        CHECK_EQ(asked(), 0);
        // It has grown.
        const auto longer = joined(first, words(3, 20));
        CHECK_EQ(cache.run_and_retain(longer).slot, placement.slot);
        CHECK_EQ(asked(), 1);
        CHECK_EQ(asked(), 0);
    }
}

TEST(a_lease_ends_for_what_has_left_its_slot_too) {
    for (const CacheShape& shape : kShapes) {
        Cache cache(shape, 150 * kCellBytes);
        cache.run_and_retain(words(1, 100), 1000);
        for (const std::uint32_t seed : {2u, 3u, 4u})
            cache.run_and_retain(words(seed, 100));
        // While its caller is expected, nothing else takes its room.
        CHECK_EQ(cache.retention.lookup(joined(words(1, 100), words(9, 5))).resident, 100);
        cache.retention.end_leases(cache.now = 1000);
        for (const std::uint32_t seed : {5u, 6u, 7u})
            cache.run_and_retain(words(seed, 100));
        CHECK_EQ(cache.retention.lookup(joined(words(1, 100), words(9, 5))).resident, 0);
        CHECK_EQ(cache.retention.ram().sequences, 1);
    }
}

TEST(what_is_not_kept_goes_at_the_end_of_its_lease_or_hold) {
    for (const CacheShape& shape : kShapes) {
        Cache cache(shape);
        const auto prompt = joined(words(1, 100), words(9, 5));
        const auto resident = [&] { return cache.retention.lookup(prompt).resident; };
        cache.retention.retain(cache.run(words(1, 100), false).slot, ++cache.now, 1000);
        CHECK_EQ(resident(), 100);
        cache.retention.end_leases(1000);
        CHECK_EQ(resident(), 0);
        CHECK_EQ(cache.retention.cells().used, 0);

        // In RAM, too.
        cache.retention.hold(cache.run(words(1, 100), false).slot, 2000);
        cache.retention.give_up(cache.retention.eviction_victim_among_held());
        cache.check();
        CHECK_EQ(cache.retention.ram().sequences, 1);
        CHECK_EQ(resident(), 100);
        cache.retention.end_leases(1999);
        CHECK_EQ(resident(), 100);
        cache.retention.end_leases(2000);
        CHECK_EQ(resident(), 0);
        CHECK_EQ(cache.retention.ram().bytes, 0);
        cache.check();
    }
}

TEST(without_a_limit_nothing_goes_to_ram) {
    Cache cache(streams(2, 512, 512), 0);
    for (const std::uint32_t seed : {1u, 2u, 3u})
        cache.run_and_retain(words(seed, 100));
    CHECK_EQ(cache.retention.ram().saves, 0);
    CHECK_EQ(cache.run(joined(words(1, 100), words(9, 5))).reused, 0);
}

TEST(a_prefix_of_what_is_in_ram_is_restored_and_cut) {
    Cache cache(streams(2, 512, 512));
    cache.run_and_retain(joined(words(1, 100), words(6, 50)));
    cache.run_and_retain(words(2, 100));
    cache.run_and_retain(words(3, 100));
    const Placement cut = cache.run(joined(words(1, 100), words(5, 50)));
    CHECK_EQ(cut.reused, 100);
    // What is behind the prefix may still be wanted.
    CHECK_EQ(cache.retention.lookup(joined(words(1, 100), words(6, 60))).resident, 150);
}

TEST(what_cannot_be_cut_is_restored_whole_or_not_at_all) {
    for (const CacheShape& shape :
         {without_cuts(streams(2, 512, 512)), stand_alone(streams(2, 512, 512))}) {
        Cache cache(shape);
        cache.run_and_retain(joined(words(1, 100), words(6, 50)));
        cache.run_and_retain(words(2, 100));
        cache.run_and_retain(words(3, 100));
        CHECK_EQ(cache.run(joined(words(1, 100), words(5, 50))).reused, 0);
        CHECK_EQ(cache.retention.ram().restores, 0);
    }
}

TEST(a_longer_one_takes_the_place_of_its_beginning) {
    Cache cache(streams(1, 512, 512));
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(words(2, 100));
    cache.run_and_retain(joined(words(1, 100), words(3, 50)));
    cache.run_and_retain(words(6, 100));
    CHECK_EQ(cache.retention.ram().sequences, 2);
    CHECK_EQ(cache.retention.ram().bytes, 250 * kCellBytes);
}

TEST(the_limit_holds_and_the_policy_chooses) {
    Cache cache(streams(1, 512, 512), 250 * kCellBytes);
    for (const std::uint32_t seed : {1u, 2u, 3u, 4u})
        cache.run_and_retain(words(seed, 100));
    CHECK_EQ(cache.retention.ram().bytes, 200 * kCellBytes);
    CHECK_EQ(cache.retention.ram().drops, 1);
    CHECK_EQ(cache.retention.lookup(words(1, 100)).resident, 0);
    CHECK_EQ(cache.retention.lookup(words(2, 100)).resident, 99);
    // One that would never fit leaves the others alone.
    cache.run_and_retain(words(5, 300));
    cache.run_and_retain(words(6, 100));
    CHECK_EQ(cache.retention.lookup(words(5, 300)).resident, 0);
    CHECK(cache.retention.ram().bytes <= 250 * kCellBytes);
}

TEST(a_backend_that_refuses_costs_a_recompute_and_nothing_else) {
    Cache saves(streams(1, 512, 512));
    saves.backend.refuse_saves();
    saves.run_and_retain(words(1, 100));
    saves.run_and_retain(words(2, 100));
    CHECK_EQ(saves.run(joined(words(1, 100), words(9, 5))).reused, 0);
    Cache restores(streams(1, 512, 512));
    restores.run_and_retain(words(1, 100));
    restores.run_and_retain(words(2, 100));
    restores.backend.refuse_restores();
    CHECK_EQ(restores.run(joined(words(1, 100), words(9, 5))).reused, 0);
    // It is not tried again.
    CHECK_EQ(restores.retention.ram().sequences, 1);
    CHECK_EQ(restores.retention.ram().drops, 1);
}

TEST(nothing_is_saved_that_is_found_elsewhere) {
    Cache cache(streams(3, 512, 512));
    cache.run_and_retain(words(1, 100));
    cache.run_and_retain(joined(words(1, 50), words(7, 60)));
    const SlotId longer = cache.run(joined(words(1, 100), words(2, 20))).slot;
    const SlotId same = cache.run(words(1, 100)).slot;
    cache.retention.hold(same, 1000);
    CHECK(longer != same);
    cache.retention.give_up(same);
    cache.check();
    CHECK_EQ(cache.retention.ram().saves, 0);
}

// Answers to one prompt: all but their last words is in the other's slot.
TEST(a_branch_that_ends_soon_behind_another_slots_is_not_saved) {
    for (const std::int32_t own : {31, 32}) {
        Cache cache(streams(2, 512, 512));
        const auto prompt = words(1, 200);
        for (const std::uint32_t seed : {2u, 3u, 4u})
            cache.run_and_retain(joined(prompt, words(seed, own)));
        CHECK_EQ(cache.retention.ram().sequences, own == 32 ? 1 : 0);
        // The first stayed, since the third was copied from it.
        const auto second = joined(prompt, words(3, own + 5));
        CHECK_EQ(cache.retention.lookup(second).resident, own == 32 ? 232 : 200);
    }
}

// Slot 1 is beside the one that runs; slot 2 is what the policy would give up.
TEST(what_is_in_the_way_goes_to_ram_or_else_to_the_victims_place) {
    for (const std::int64_t ram : {kPlenty, std::int64_t{0}}) {
        Cache cache(streams(3, 512, 512), ram);
        for (const std::uint32_t seed : {1u, 2u, 3u})
            cache.run(words(seed, 100));
        for (const SlotId slot : {2, 1})
            cache.retention.retain(slot, ++cache.now, 0);
        CHECK_EQ(cache.run(words(4, 100)).slot, 1);
        CHECK_EQ(cache.retention.copies(), ram > 0 ? 0 : 1);
        CHECK_EQ(cache.retention.ram().saves, ram > 0 ? 1 : 0);
        const auto resident = [&](std::uint32_t seed) {
            return cache.retention.lookup(joined(words(seed, 100), words(9, 5))).resident;
        };
        CHECK_EQ(resident(2), 100);
        CHECK_EQ(resident(3), ram > 0 ? 100 : 0);
    }
}

TEST(what_is_cut_off_the_last_evictable_slot_is_in_ram) {
    Cache cache(streams(2, 512, 512));
    cache.run_and_retain(joined(words(1, 100), words(6, 100)));
    cache.run(words(2, 10));
    const Placement cut = cache.run(joined(words(1, 100), words(5, 100)));
    CHECK_EQ(cut.reused, 100);
    cache.retention.drop(cut.slot);
    CHECK_EQ(cache.run(joined(words(1, 100), words(6, 110))).reused, 200);
}

TEST(unified_layouts_make_room_for_what_comes_back) {
    Cache cache(unified(4, 512, 512, 512));
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
        cache.retention.ensure_cells(200);
        cache.run_and_retain(words(seed, 200));
    }
    CHECK_EQ(cache.retention.ram().sequences, 1);
    const auto prompt = joined(words(1, 200), words(9, 5));
    const auto placement = cache.retention.acquire(prompt, ++cache.now);
    CHECK_EQ(placement->reused, 200);
    CHECK(cache.retention.cells().free >= 0);
    cache.check();
}

// 16 agents with contexts of their own, each back after the same time, over 8 slots: the least
// recently used one is always the next one that is wanted.
TEST(a_cycle_of_agents_finds_what_a_part_of_the_slots_can_hold) {
    Cache cache(streams(8, 512, 512), 0);
    std::int64_t found = 0, wanted = 0;
    std::vector<std::vector<Token>> contexts;
    for (std::uint32_t agent = 0; agent < 16; ++agent)
        contexts.push_back(words(agent, 100));
    for (int round = 0; round < 12; ++round) {
        for (auto& context : contexts) {
            cache.now += 100;
            const Placement placement = cache.run_and_retain(context);
            if (round >= 4) {
                found += placement.reused;
                wanted += static_cast<std::int64_t>(context.size());
            }
            context = joined(context, words(static_cast<std::uint32_t>(round), 10));
        }
    }
    // The best that any choice can do is 7 of 16: one slot is always needed for the newcomer.
    CHECK(found * 16 >= wanted * 5);
}

TEST(a_cycle_of_agents_finds_everything_with_ram) {
    Cache cache(streams(8, 512, 512));
    std::vector<std::vector<Token>> contexts;
    for (std::uint32_t agent = 0; agent < 16; ++agent)
        contexts.push_back(words(agent, 100));
    for (int round = 0; round < 4; ++round) {
        for (auto& context : contexts) {
            cache.now += 100;
            const Placement placement = cache.run_and_retain(context);
            if (round > 0)
                CHECK_EQ(placement.reused, static_cast<std::int32_t>(context.size()) - 10);
            context = joined(context, words(static_cast<std::uint32_t>(round), 10));
        }
    }
}

TEST_MAIN()
