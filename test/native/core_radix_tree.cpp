#include "core/radix_tree.h"

#include <algorithm>
#include <random>

#include "check.h"

using namespace fermata;

namespace {

std::vector<Token> sequence(Token first, int count) {
    std::vector<Token> tokens;
    for (int i = 0; i < count; ++i)
        tokens.push_back(first + i);
    return tokens;
}

std::vector<Token> joined(std::vector<Token> a, const std::vector<Token>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::vector<std::int32_t> match(const RadixTree& tree, std::span<const Token> prompt, int slots) {
    std::vector<std::int32_t> shared(static_cast<std::size_t>(slots), -1);
    tree.match(prompt, 0, shared);
    return shared;
}

using Lengths = std::vector<std::int32_t>;

}  // namespace

TEST(groups_of_adjacent_slots_are_counted) {
    SlotSet set;
    CHECK_EQ(set.runs(), 0);
    for (const SlotId slot : {0, 1, 4})
        set.add(slot);
    CHECK_EQ(set.runs(), 2);
    for (const SlotId slot : {63, 64, 127, 129, 255})
        set.add(slot);
    CHECK_EQ(set.runs(), 6);
    CHECK_EQ(set.with(128).runs(), 5);
    CHECK_EQ(set.first(), 0);
    CHECK_EQ(SlotSet{}.with(200).first(), 200);
    CHECK_EQ(SlotSet{}.first(), kNoSlot);
}

TEST(a_path_is_shared_with_the_slots_that_are_asked_for) {
    RadixTree tree(4);
    tree.extend(0, sequence(100, 50));
    tree.extend(1, joined(sequence(100, 30), {1, 2}));
    tree.extend(2, joined(sequence(100, 40), {1, 2}));
    tree.extend(3, sequence(7, 10));
    const auto set = [](std::initializer_list<SlotId> slots) {
        SlotSet all;
        for (const SlotId slot : slots)
            all.add(slot);
        return all;
    };
    CHECK_EQ(tree.shared_with(0, set({0, 1, 2, 3})), 40);
    CHECK_EQ(tree.shared_with(0, set({0, 1, 3})), 30);
    CHECK_EQ(tree.shared_with(0, set({3})), 0);
    CHECK_EQ(tree.shared_with(1, set({0, 2})), 30);
    tree.truncate(0, 40);
    CHECK_EQ(tree.shared_with(0, set({2})), 40);
    tree.truncate(0, 0);
    CHECK_EQ(tree.shared_with(0, set({1, 2})), 0);
}

TEST(prefixes_are_kept_together_and_matched_by_slot) {
    RadixTree tree(3);
    const auto shared = sequence(100, 50);
    tree.extend(0, joined(shared, {1, 2, 3}));
    tree.extend(1, joined(shared, {1, 9}));
    CHECK_EQ(tree.node_count(), 3);
    CHECK_EQ(tree.check_integrity(), "");
    CHECK(match(tree, joined(shared, {1, 2, 4}), 3) == (Lengths{52, 51, 0}));
    CHECK(match(tree, sequence(100, 10), 3) == (Lengths{10, 10, 0}));
    CHECK(match(tree, sequence(7, 10), 3) == (Lengths{0, 0, 0}));
    CHECK(match(tree, {}, 3) == (Lengths{0, 0, 0}));
}

TEST(a_path_that_ends_within_another_is_found) {
    RadixTree tree(2);
    tree.extend(0, sequence(0, 20));
    tree.extend(1, sequence(0, 8));
    CHECK_EQ(tree.node_count(), 2);
    CHECK(match(tree, sequence(0, 30), 2) == (Lengths{20, 8}));
    tree.truncate(1, 0);
    CHECK_EQ(tree.node_count(), 1);
    CHECK_EQ(tree.check_integrity(), "");
}

TEST(slots_that_grow_alike_stay_on_one_run) {
    RadixTree tree(2);
    for (Token token = 0; token < 500; ++token)
        for (SlotId slot = 0; slot < 2; ++slot)
            tree.extend(slot, std::span(&token, 1));
    CHECK_EQ(tree.node_count(), 1);
    tree.truncate(0, 300);
    tree.truncate(1, 100);
    CHECK_EQ(tree.node_count(), 2);
    CHECK_EQ(tree.check_integrity(), "");
    CHECK(match(tree, sequence(0, 500), 2) == (Lengths{300, 100}));
}

TEST(a_path_may_be_extended_by_that_of_another_slot) {
    RadixTree tree(2);
    tree.extend(0, sequence(0, 20));
    tree.extend(1, tree.path(0).first(12));
    CHECK(std::ranges::equal(tree.path(1), sequence(0, 12)));
    CHECK_EQ(tree.check_integrity(), "");
}

TEST(one_slot_only) {
    RadixTree tree(1);
    tree.extend(0, sequence(0, 5));
    tree.extend(0, sequence(5, 5));
    CHECK_EQ(tree.node_count(), 1);
    tree.truncate(0, 3);
    CHECK(match(tree, sequence(0, 9), 1) == (Lengths{3}));
    tree.truncate(0, 0);
    CHECK_EQ(tree.node_count(), 0);
}

// Few different tokens, so that paths part, meet and end within each other all the time.
TEST(random_operations_agree_with_plain_vectors) {
    constexpr int kSlots = 70;  // more than one word of a SlotSet
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
        std::mt19937 random(seed);
        const auto below = [&](std::size_t limit) { return random() % limit; };
        RadixTree tree(kSlots);
        std::vector<std::vector<Token>> paths(kSlots);
        for (int step = 0; step < 6000; ++step) {
            const auto slot = static_cast<SlotId>(below(kSlots));
            auto& path = paths[static_cast<std::size_t>(slot)];
            switch (below(4)) {
                case 0: {
                    std::vector<Token> tokens;
                    for (auto count = below(6); count > 0; --count)
                        tokens.push_back(static_cast<Token>(below(2)));
                    tree.extend(slot, tokens);
                    path = joined(path, tokens);
                    break;
                }
                case 1: {
                    const auto other = static_cast<SlotId>(below(kSlots));
                    if (other == slot) break;
                    const auto& from = paths[static_cast<std::size_t>(other)];
                    const auto length = below(from.size() + 1);
                    tree.truncate(slot, 0);
                    tree.extend(slot, tree.path(other).first(length));
                    path.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(length));
                    break;
                }
                default: {
                    const auto length = below(3) == 0 ? 0 : below(path.size() + 1);
                    tree.truncate(slot, static_cast<std::int32_t>(length));
                    path.resize(length);
                }
            }
            CHECK_EQ(tree.check_integrity(), "");
            std::vector<Token> prompt = paths[below(kSlots)];
            prompt.push_back(static_cast<Token>(below(2)));
            const auto shared = match(tree, prompt, kSlots);
            for (std::size_t i = 0; i < kSlots; ++i) {
                CHECK(std::ranges::equal(tree.path(static_cast<SlotId>(i)), paths[i]));
                const auto end = std::ranges::mismatch(paths[i], prompt).in1;
                CHECK_EQ(shared[i], static_cast<std::int32_t>(end - paths[i].begin()));
            }
            CHECK(tree.node_count() <= 2 * kSlots);
        }
    }
}

TEST_MAIN()
