// RAM keeps what sequences have in common once, and nothing that a slot has too.
#include <algorithm>
#include <random>

#include "watched_cache.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

struct Cache : WatchedCache {
    explicit Cache(CacheShape shape, std::int64_t ram = kPlenty) : WatchedCache(shape, ram) {}

    Placement acquire(const std::vector<Token>& prompt, Salt salt = 0) {
        const auto placement = retention.acquire(prompt, ++now, salt);
        CHECK(placement.has_value());
        retention.plan(placement->slot,
                       std::span(prompt).subspan(static_cast<std::size_t>(placement->reused)));
        return *placement;
    }
    Placement run(const std::vector<Token>& prompt, Milliseconds lease = 0, Salt salt = 0) {
        const Placement placement = acquire(prompt, salt);
        retention.ensure_cells(static_cast<std::int64_t>(prompt.size()) - placement.reused);
        decode(placement.slot, prompt, placement.reused, static_cast<std::int32_t>(prompt.size()));
        retention.retain(placement.slot, ++now, lease);
        check();
        return placement;
    }
    // What was computed for the first positions of a slot.
    std::vector<std::int64_t> values(SlotId slot, std::size_t count = 242) const {
        std::vector<std::int64_t> values;
        for (const Cell* cell : backend.cells(slot))
            if (values.size() < count) values.push_back(cell->shape);
        return values;
    }
    std::int32_t resident(const std::vector<Token>& prompt) const {
        return retention.lookup(joined(prompt, words(99, 1))).resident;
    }
};

const auto kSystem = words(1, 192);  // three pages

std::vector<Token> conversation(std::uint32_t seed, std::size_t own) {
    return joined(kSystem, words(seed, own));
}

}  // namespace

TEST(a_common_beginning_is_in_ram_once) {
    Cache cache(streams(1, 512, 512));
    for (const std::uint32_t seed : {2u, 3u, 4u, 5u})
        cache.run(conversation(seed, 50));
    CHECK_EQ(cache.retention.ram().sequences, 3);
    CHECK_EQ(cache.retention.ram().bytes, (192 + 3 * 50) * kCellBytes);
    // All of them are whole, also after the one that came first has gone.
    CHECK_EQ(cache.run(conversation(2, 60)).reused, 242);
    CHECK_EQ(cache.run(conversation(3, 60)).reused, 242);
    CHECK_EQ(cache.run(conversation(4, 60)).reused, 242);
}

TEST(more_conversations_fit_when_their_beginning_is_common) {
    Cache cache(streams(1, 512, 512), (192 + 6 * 50) * kCellBytes);
    for (std::uint32_t seed = 2; seed < 9; ++seed)
        cache.run(conversation(seed, 50));
    CHECK_EQ(cache.retention.ram().sequences, 6);
    CHECK_EQ(cache.retention.ram().drops, 0);
    // One more than fits costs one, not all.
    cache.run(conversation(9, 50));
    CHECK_EQ(cache.retention.ram().sequences, 6);
    CHECK_EQ(cache.retention.ram().drops, 1);
}

TEST(other_salts_have_pages_of_their_own) {
    Cache cache(streams(1, 512, 512));
    for (const Salt salt : {1u, 2u, 3u})
        cache.run(conversation(2, 50), 0, salt);
    CHECK_EQ(cache.retention.ram().sequences, 2);
    CHECK_EQ(cache.retention.ram().bytes, 2 * 242 * kCellBytes);
}

// Two computed the same tokens side by side, in other batches: their values differ in the last
// bits.
TEST(what_was_computed_otherwise_is_not_shared) {
    for (const bool differs : {false, true}) {
        Cache cache(streams(2, 512, 512));
        if (differs) cache.backend.feel_batch_shapes();
        const auto first = conversation(2, 50), second = conversation(3, 50);
        const SlotId one = cache.acquire(first).slot, other = cache.acquire(second).slot;
        cache.decode(one, first, 0, 242);
        cache.decode(other, second, 0, 100);
        cache.decode(other, second, 100, 242);
        const auto was = std::vector{cache.values(one), cache.values(other)};
        for (const SlotId slot : {one, other})
            cache.retention.retain(slot, ++cache.now, 0);
        for (const std::uint32_t seed : {11u, 12u})
            cache.run(words(seed, 100));
        CHECK_EQ(cache.retention.ram().sequences, 2);
        CHECK_EQ(cache.retention.ram().bytes, (differs ? 2 * 242 : 192 + 2 * 50) * kCellBytes);
        // Both come back as they were.
        CHECK(cache.values(cache.run(joined(first, words(20, 5))).slot, 242) == was[0]);
        CHECK(cache.values(cache.run(joined(second, words(20, 5))).slot, 242) == was[1]);
    }
}

// Where RAM is full and less is shared than expected, the limit holds.
TEST(the_limit_holds_when_less_is_shared_than_expected) {
    Cache cache(streams(2, 512, 512), 300 * kCellBytes);
    cache.backend.feel_batch_shapes();
    const auto first = conversation(2, 50), second = conversation(3, 50);
    const SlotId one = cache.acquire(first).slot, other = cache.acquire(second).slot;
    cache.decode(one, first, 0, 242);
    cache.decode(other, second, 0, 100);
    cache.decode(other, second, 100, 242);
    for (const SlotId slot : {one, other})
        cache.retention.retain(slot, ++cache.now, 0);
    for (const std::uint32_t seed : {11u, 12u})
        cache.run(words(seed, 100));
    CHECK_EQ(cache.retention.ram().sequences, 1);
    CHECK_EQ(cache.retention.ram().bytes, 242 * kCellBytes);
}

// 20 positions more in RAM than in the slot are computed, not restored: then the slot has them too.
TEST(what_a_slot_has_too_leaves_ram) {
    for (const CacheShape& shape : {streams(1, 512, 512), unified(1, 512, 512, 512)}) {
        Cache cache(shape);
        const auto old = words(1, 200);
        cache.run(old);
        cache.run(joined(words(1, 180), words(7, 30)));
        CHECK_EQ(cache.retention.ram().sequences, 1);
        CHECK_EQ(cache.run(joined(old, words(8, 40))).reused, 180);
        // In RAM is only what left the slot for it.
        CHECK_EQ(cache.retention.ram().sequences, 1);
        CHECK_EQ(cache.retention.ram().bytes, 210 * kCellBytes);
        CHECK_EQ(cache.resident(old), 200);
        // It is saved when it leaves.
        cache.run(words(3, 100));
        CHECK_EQ(cache.resident(joined(old, words(8, 40))), 240);
    }
}

// What the slot holds could not go where RAM's part of it is.
TEST(what_has_outgrown_ram_is_there_up_to_where_it_fitted) {
    Cache cache(streams(1, 512, 512), 290 * kCellBytes);
    const auto old = words(1, 200);
    cache.run(old);
    cache.run(joined(words(1, 180), words(7, 30)));
    const auto grown = joined(old, words(8, 100));
    cache.run(grown);
    CHECK_EQ(cache.retention.ram().bytes, (200 + 210 - 128) * kCellBytes);
    cache.run(words(3, 40));
    CHECK_EQ(cache.resident(grown), 200);
    CHECK_EQ(cache.retention.ram().drops, 0);
}

// However much of it is there: without the rest it would be too large, too.
TEST(what_is_larger_than_ram_drives_nothing_out) {
    Cache cache(streams(1, 512, 512), 300 * kCellBytes);
    cache.run(conversation(2, 50));
    cache.run(conversation(3, 50));
    cache.run(conversation(4, 150));
    CHECK_EQ(cache.retention.ram().sequences, 2);
    cache.run(words(5, 40));
    CHECK_EQ(cache.retention.ram().sequences, 2);
    CHECK_EQ(cache.retention.ram().drops, 0);
}

TEST(what_somebody_waits_for_stays_in_ram_beside_the_slot) {
    Cache cache(streams(1, 512, 512));
    const auto old = words(1, 200);
    cache.run(old, 1000);
    cache.run(joined(words(1, 180), words(7, 30)), 0);
    const std::int64_t before = cache.retention.ram().bytes;
    CHECK(before > 0);
    cache.run(joined(old, words(8, 40)));
    cache.retention.drop(0);
    CHECK_EQ(cache.resident(old), 200);
}

namespace {

// Prompts of a small family: a system message, then turns that branch now and then.
class Family {
   public:
    explicit Family(std::uint32_t seed) : random_(seed) {}
    std::size_t below(std::size_t limit) { return random_() % limit; }
    std::vector<Token> prompt() {
        std::vector<Token> tokens = words(1000 + static_cast<std::uint32_t>(below(2)), 130);
        for (auto turns = below(6); turns > 0; --turns) {
            const auto turn = words(static_cast<std::uint32_t>(below(3)), 10 + 25 * below(3));
            tokens.insert(tokens.end(), turn.begin(), turn.end());
        }
        const auto last = words(static_cast<std::uint32_t>(below(1000)), 1 + below(60));
        tokens.insert(tokens.end(), last.begin(), last.end());
        return tokens;
    }

   private:
    std::mt19937 random_;
};

std::int32_t common(const std::vector<Token>& a, const std::vector<Token>& b) {
    return static_cast<std::int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

// The model: a list of all that ever ran. With room for all of it nothing may be lost but what is
// computed as fast as it is kept.
TEST(with_room_for_all_nothing_is_lost) {
    for (const CacheShape& shape : {streams(3, 512, 512), unified(4, 1024, 512, 512)}) {
        for (std::uint32_t seed = 0; seed < 20; ++seed) {
            Cache cache(shape);
            Family family(seed);
            std::vector<std::vector<Token>> ran;
            for (int step = 0; step < 60; ++step) {
                const std::vector<Token> prompt = family.prompt();
                std::int32_t known = 0;
                for (const auto& one : ran)
                    known = std::max(known, common(one, prompt));
                const std::int32_t most = static_cast<std::int32_t>(prompt.size()) - 1;
                const std::int32_t found = cache.retention.lookup(prompt).resident;
                CHECK(found <= std::min(known, most));
                CHECK(found >= std::min(known, most) - kMinCopiedPositions);
                cache.run(prompt, family.below(4) == 0 ? cache.now + 5 : 0);
                cache.retention.end_leases(cache.now);
                cache.check();
                ran.push_back(prompt);
            }
            CHECK(cache.retention.ram().saves > 10);
            CHECK(cache.retention.ram().restores > 5);
        }
    }
}

// What is found is right, and the limit holds, however little room there is.
TEST(little_room_for_much_that_is_common) {
    for (const std::int64_t room : {150, 400, 1000}) {
        for (std::uint32_t seed = 0; seed < 20; ++seed) {
            Cache cache(streams(2, 512, 512), room * kCellBytes);
            if (seed % 2 == 1) cache.backend.feel_batch_shapes();
            Family family(seed);
            for (int step = 0; step < 80; ++step) {
                cache.run(family.prompt(), family.below(4) == 0 ? cache.now + 5 : 0);
                cache.retention.end_leases(cache.now);
                if (family.below(30) == 0) cache.retention.clear_retained();
                cache.check();
                CHECK(cache.retention.ram().bytes <= room * kCellBytes);
            }
        }
    }
}

TEST_MAIN()
