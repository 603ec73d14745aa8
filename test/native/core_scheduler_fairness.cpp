// Who waits for whom: readers that stop, holds, those who come back, and batches that fail.
#include <algorithm>

#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 30;

void hold(World& world, SequenceId id) {
    world.scheduler.pause(id);
    while (!world.outcomes[id].held)
        CHECK(world.step());
}

void read_to_end(World& world, SequenceId id) {
    while (!world.outcomes[id].finished) {
        world.scheduler.acknowledge(id, 4);
        world.run();
    }
}

}  // namespace

TEST(four_readers_that_stopped_cost_nobody_a_place) {
    for (const std::int32_t slots : {4, 12}) {
        World world(streams(slots), {.parallel = 4, .step_token_budget = 64, .ram_limit = kPlenty});
        std::vector<SequenceId> unread;
        for (std::uint32_t i = 0; i < 4; ++i)
            unread.push_back(world.submit(
                {.id = 0, .prompt = words(i, 80), .limits = {.max_tokens = 40, .window = 4}}));
        world.run();
        const SequenceId other = world.submit(words(9, 80), 10);
        world.run();
        CHECK(world.outcomes[other].finished);
        for (const SequenceId id : unread) {
            read_to_end(world, id);
            CHECK_EQ(world.outcomes[id].sampled, world.reference(world.prompts[id], 40));
        }
        CHECK_EQ(world.scheduler.stats().recomputed_tokens, 0);
    }
}

TEST(readers_that_stopped_give_up_their_cells_before_anybody_else) {
    World world(unified(4, 400, 200),
                {.parallel = 2, .step_token_budget = 64, .ram_limit = kPlenty});
    std::vector<SequenceId> unread;
    for (std::uint32_t i = 0; i < 2; ++i)
        unread.push_back(world.submit(
            {.id = 0, .prompt = words(i, 180), .limits = {.max_tokens = 15, .window = 4}}));
    world.run();
    const SequenceId other = world.submit(words(9, 150), 10);
    world.run();
    CHECK_EQ(world.outcomes[other].sampled, world.reference(words(9, 150), 10));
    CHECK(world.outcomes[other].finished);
    for (const SequenceId id : unread) {
        read_to_end(world, id);
        CHECK_EQ(world.outcomes[id].sampled, world.reference(world.prompts[id], 15));
    }
}

TEST(a_hold_leaves_for_ram_when_a_place_is_free) {
    World world(streams(2), {.parallel = 2, .step_token_budget = 64, .ram_limit = kPlenty});
    const SequenceId held = world.submit(words(1, 100), 30);
    hold(world, held);
    const SequenceId longer = world.submit(words(2, 100), 300);
    for (int i = 0; i < 10; ++i)
        world.step();
    const SequenceId newcomer = world.submit(words(3, 100), 10);
    for (int i = 0; i < 30; ++i)
        world.step();
    CHECK(world.outcomes[newcomer].finished);
    CHECK(!world.outcomes[longer].finished);
    const auto before = world.outcomes[held].sampled;
    world.scheduler.resume({.id = held, .tokens = words(4, 20), .max_tokens = 5});
    world.run();
    CHECK_EQ(world.scheduler.stats().recomputed_tokens, 0);
    CHECK_EQ(world.scheduler.stats().ram_restores, 1);
    auto history = joined(joined(words(1, 100), before), words(4, 20));
    const auto expected = joined(before, world.reference(history, 5));
    CHECK_EQ(world.outcomes[held].sampled, expected);
}

TEST(without_ram_a_hold_gives_way_to_one_that_has_waited_long) {
    World world(streams(2), {.parallel = 2, .step_token_budget = 64});
    const SequenceId held = world.submit(words(1, 100), 30);
    hold(world, held);
    world.submit(words(2, 100), 300);
    const SequenceId newcomer = world.submit(words(3, 100), 10);
    for (int i = 0; i < 20; ++i)
        world.step();
    CHECK(world.outcomes[newcomer].sampled.empty());
    world.now += 5'000;
    for (int i = 0; i < 20; ++i)
        world.step();
    CHECK(world.outcomes[newcomer].finished);
}

TEST(one_that_has_waited_long_goes_before_those_that_are_resumed) {
    World world(streams(4), {.parallel = 1, .step_token_budget = 64});
    const SequenceId held = world.submit(words(1, 50), 30);
    hold(world, held);
    const SequenceId running = world.submit(words(2, 50), 300);
    world.step();
    const SequenceId newcomer = world.submit(words(3, 50), 100);
    world.step();
    world.now += 5'000;
    world.step();
    world.scheduler.resume({.id = held, .tokens = words(4, 20), .max_tokens = 5});
    world.scheduler.cancel(running, world.now);
    while (!world.outcomes[newcomer].finished)
        CHECK(world.step());
    CHECK(!world.outcomes[held].finished);
    world.run();
    CHECK(world.outcomes[held].finished);
}

TEST(a_batch_that_fails_costs_only_the_one_at_fault) {
    World world(streams(4));
    std::vector<SequenceId> ids;
    for (std::uint32_t i = 0; i < 3; ++i)
        ids.push_back(world.submit(words(i, 10), 12));
    world.step();
    // The batch, and then the second of those that are tried alone.
    world.backend.set_status(1, DecodeStatus::kFailed);
    world.backend.set_status(3, DecodeStatus::kFailed);
    world.run();
    int failed = 0;
    for (const SequenceId id : ids) {
        const Outcome& outcome = world.outcomes[id];
        failed += outcome.failed ? 1 : 0;
        if (outcome.failed) {
            CHECK(outcome.fail == FailCode::kDecodeFailed);
        } else {
            CHECK_EQ(outcome.sampled, world.reference(world.prompts[id], 12));
        }
    }
    CHECK_EQ(failed, 1);
}

TEST(values_that_are_no_numbers_fail_their_sequence) {
    for (const bool empty : {false, true}) {
        World world(streams(2));
        const SequenceId id = world.submit(words(1, 10), 12);
        world.step();
        world.backend.break_logits(empty);
        world.run();
        CHECK(world.outcomes[id].failed);
        CHECK(world.outcomes[id].fail == FailCode::kDecodeFailed);
        CHECK_EQ(world.outcomes[id].sampled.size(), std::size_t{1});
    }
}

TEST(what_a_hold_that_expired_had_computed_is_found_again) {
    World world(streams(4), {.parallel = 2, .step_token_budget = 64, .hold_lease_ms = 100});
    const auto prompt = words(1, 100);
    hold(world, world.submit(prompt, 30));
    world.now += 200;
    world.run();
    CHECK(world.outcomes[1].fail == FailCode::kLeaseExpired);
    const SequenceId again = world.submit(prompt, 5);
    world.run();
    CHECK_EQ(world.outcomes[again].usage.cached_tokens, 99);
}

TEST(a_step_that_moved_much_prefills_nothing_beside_others) {
    struct HeavyBackend : FakeBackend {
        using FakeBackend::FakeBackend;
        std::size_t saved_size(SlotId) override { return kMovedInAStep; }
    };
    HeavyBackend backend(streams(4));
    Scheduler scheduler({.parallel = 4, .step_token_budget = 64}, backend);
    const auto submit = [&](SequenceId id, std::vector<Token> prompt, std::int32_t most) {
        scheduler.submit({.id = id, .prompt = std::move(prompt), .limits = {.max_tokens = most}});
    };
    Milliseconds now = 0;
    submit(1, joined(words(1, 200), words(2, 40)), 1);
    while (scheduler.step(++now)) {
    }
    submit(2, words(3, 20), 100);
    scheduler.step(++now);
    scheduler.take_events();
    submit(3, joined(words(1, 200), words(4, 40)), 5);
    scheduler.step(++now);
    scheduler.step(++now);
    const std::vector<StepReport> steps = scheduler.take_events().steps;
    CHECK_EQ(steps.size(), 2u);
    CHECK_EQ(steps[0].copies, 1);
    CHECK_EQ(steps[0].prefill_rows, 0);
    CHECK_EQ(steps[0].decode_rows, 1);
    CHECK_EQ(steps[1].prefill_rows, 40);
}

TEST_MAIN()

TEST(who_would_lose_its_cells_by_waiting_goes_first) {
    for (const std::int64_t ram : {std::int64_t{0}, kPlenty}) {
        World world(streams(2), {.parallel = 1, .step_token_budget = 64, .ram_limit = ram});
        const SequenceId first = world.submit(words(1, 200), 10);
        world.run();
        const SequenceId running = world.submit(words(2, 200), 50);
        world.step();
        const SequenceId newcomer = world.submit(words(3, 200), 10);
        const auto history =
            joined(joined(words(1, 200), world.outcomes[first].sampled), words(4, 20));
        const SequenceId returns = world.submit(history, 10);
        while (!world.outcomes[returns].finished && !world.outcomes[newcomer].finished)
            CHECK(world.step());
        // With room in RAM nothing is lost, and who came first goes first.
        CHECK_EQ(world.outcomes[returns].finished, ram == 0);
        world.run();
        CHECK(world.outcomes[running].finished);
        CHECK(world.outcomes[returns].usage.cached_tokens >= 209);
        CHECK_EQ(world.outcomes[returns].sampled, world.reference(history, 10));
        CHECK_EQ(world.outcomes[newcomer].sampled, world.reference(words(3, 200), 10));
    }
}

TEST(who_has_only_a_prefix_that_others_have_too_passes_nobody) {
    World world(streams(2), {.parallel = 1, .step_token_budget = 64});
    const std::vector<Token> shared = words(9, 200);
    const SequenceId first = world.submit(joined(shared, words(1, 100)), 10);
    world.run();
    const auto history =
        joined(joined(joined(shared, words(1, 100)), world.outcomes[first].sampled), words(4, 60));
    world.submit(joined(shared, words(2, 20)), 50);
    world.step();
    world.submit(joined(shared, words(3, 30)), 10);
    const SequenceId returns = world.submit(history, 10);
    const SequenceId newcomer = world.submit(joined(shared, words(5, 10)), 10);
    while (!world.outcomes[returns].finished && !world.outcomes[newcomer].finished)
        CHECK(world.step());
    CHECK(world.outcomes[returns].finished);
    CHECK(world.outcomes[returns].usage.cached_tokens >= 309);
}

TEST(nobody_is_passed_by_more_than_were_in_front_of_it) {
    World world(streams(8), {.parallel = 1, .step_token_budget = 64});
    std::vector<std::vector<Token>> histories;
    for (std::uint32_t i = 0; i < 7; ++i) {
        const SequenceId id = world.submit(words(i, 200), 10);
        world.run();
        histories.push_back(
            joined(joined(words(i, 200), world.outcomes[id].sampled), words(20 + i, 20)));
    }
    world.submit(words(7, 200), 50);
    world.step();
    std::vector<SequenceId> newcomers;
    for (std::uint32_t i = 0; i < 2; ++i)
        newcomers.push_back(world.submit(words(30 + i, 200), 10));
    std::vector<SequenceId> back;
    for (const auto& history : histories)
        back.push_back(world.submit(history, 10));
    // The first had one in front of it, the second two.
    const std::vector<SequenceId> expected{back[0], newcomers[0], back[1], newcomers[1]};
    std::vector<SequenceId> order;
    while (order.size() < expected.size()) {
        CHECK(world.step());
        for (const auto& [id, outcome] : world.outcomes) {
            if (outcome.finished && id >= newcomers[0] &&
                std::ranges::find(order, id) == order.end())
                order.push_back(id);
        }
    }
    CHECK_EQ(order, expected);
    world.run();
    // Nor did those that had to wait lose anything to the newcomers.
    for (const SequenceId id : back)
        CHECK(world.outcomes[id].usage.cached_tokens >= 209);
}

TEST(a_newcomer_waits_a_little_rather_than_take_the_cells_of_one_that_comes_back) {
    // Three conversations with slots of their own, which come back.
    World world(streams(4), {.parallel = 2, .step_token_budget = 64});
    std::vector<std::vector<Token>> histories;
    const auto turn = [&world](std::vector<Token> prompt) {
        const SequenceId id = world.submit(prompt, 10);
        while (!world.outcomes[id].finished) {
            CHECK(world.step());
            world.now += 64;
            world.scheduler.took(64);
        }
        return joined(std::move(prompt), world.outcomes[id].sampled);
    };
    for (std::uint32_t i = 0; i < 3; ++i)
        histories.push_back(turn(words(i, 200)));
    for (std::uint32_t i = 0; i < 3; ++i)
        histories[i] = turn(joined(histories[i], words(10 + i, 64)));
    const SequenceId running = world.submit(words(7, 100), 200);
    world.step();
    const SequenceId newcomer = world.submit(words(8, 200), 10);
    world.step();
    CHECK(world.outcomes[newcomer].places.back().kind == EventKind::kWaiting);
    CHECK(world.outcomes[newcomer].places.back().wait == WaitReason::kSlot);
    const SequenceId back = world.submit(joined(histories[0], words(20, 20)), 10);
    world.step();
    CHECK(world.outcomes[back].places.back().kind == EventKind::kAdmitted);
    while (!world.outcomes[back].finished)
        CHECK(world.step());
    CHECK(!world.outcomes[running].finished);
    CHECK(world.outcomes[newcomer].places.back().kind == EventKind::kWaiting);
    // A row takes a millisecond at most, and the slot that it would take has fewer than 400.
    world.now += 1'000;
    world.step();
    CHECK(world.outcomes[newcomer].places.back().kind == EventKind::kAdmitted);
    world.run();
    CHECK_EQ(world.outcomes[newcomer].sampled, world.reference(words(8, 200), 10));
}

TEST(where_nobody_comes_back_a_newcomer_does_not_wait) {
    World world(streams(2), {.parallel = 2, .step_token_budget = 64});
    for (std::uint32_t i = 0; i < 4; ++i) {
        world.submit(words(i, 200), 10);
        for (int step = 0; step < 30; ++step) {
            world.step();
            world.now += 64;
            world.scheduler.took(64);
        }
    }
    world.submit(words(7, 100), 200);
    world.step();
    const SequenceId newcomer = world.submit(words(8, 200), 10);
    world.step();
    CHECK(world.outcomes[newcomer].places.back().kind == EventKind::kAdmitted);
}
