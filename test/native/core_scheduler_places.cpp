// What the scheduler says of who waits, for what, and of where a prefix came from.
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

const Event& last_place(World& world, SequenceId id) {
    return world.outcomes.at(id).places.back();
}

}  // namespace

TEST(who_waits_for_a_place_says_so_once) {
    World world(streams(4), {.parallel = 1, .step_token_budget = 64});
    const SequenceId first = world.submit(words(1, 40), 20);
    const SequenceId second = world.submit(words(2, 40), 5);
    world.step();
    world.step();
    world.step();
    CHECK(last_place(world, first).kind == EventKind::kAdmitted);
    CHECK_EQ(last_place(world, first).reused, 0);
    CHECK_EQ(last_place(world, first).prefill_total, 40);
    CHECK(last_place(world, first).source == PrefixSource::kNone);
    CHECK_EQ(world.outcomes.at(second).places.size(), 1u);
    CHECK(last_place(world, second).kind == EventKind::kWaiting);
    CHECK(last_place(world, second).wait == WaitReason::kPlace);
    world.run();
    CHECK_EQ(world.outcomes.at(second).places.size(), 2u);
    CHECK(last_place(world, second).kind == EventKind::kAdmitted);
}

TEST(who_waits_for_a_prefix_names_the_sequence_that_computes_it) {
    World world(streams(6));
    const auto prefix = words(7, 300);
    world.submit(words(3, 20), 40);
    const SequenceId first = world.submit(joined(prefix, words(8, 20)), 5);
    const SequenceId second = world.submit(joined(prefix, words(9, 20)), 5);
    world.step();
    CHECK(last_place(world, second).wait == WaitReason::kPrefix);
    CHECK_EQ(last_place(world, second).behind, first);
    world.run();
    const Event& admitted = last_place(world, second);
    CHECK(admitted.kind == EventKind::kAdmitted);
    CHECK_EQ(admitted.reused, 300);
    CHECK_EQ(admitted.prefill_total, 20);
    CHECK(admitted.source == PrefixSource::kCopy);
    CHECK_EQ(world.outcomes.at(second).usage.cached_tokens, 300);
}

TEST(what_goes_on_from_a_slot_of_its_own_takes_it_over) {
    World world(streams(4));
    world.submit(words(1, 100), 1);
    world.run();
    const SequenceId next = world.submit(joined(words(1, 100), words(2, 10)), 1);
    world.run();
    CHECK(last_place(world, next).source == PrefixSource::kSlot);
    CHECK_EQ(last_place(world, next).reused, 100);
}

TEST(what_left_its_slot_comes_back_from_memory) {
    World world(streams(1), {.parallel = 1, .step_token_budget = 64, .ram_limit = 1 << 30});
    world.submit(words(1, 100), 1);
    world.run();
    world.submit(words(2, 100), 1);
    world.run();
    const SequenceId next = world.submit(joined(words(1, 100), words(3, 10)), 1);
    world.run();
    CHECK(last_place(world, next).source == PrefixSource::kRam);
    CHECK_EQ(last_place(world, next).reused, 100);
}

TEST(a_resume_is_admitted_with_its_own_cells) {
    World world(streams(4));
    const SequenceId id =
        world.submit({.prompt = words(1, 40),
                      .sampling = {.script = joined(tokens_of("a"), {kTurn})},
                      .pause = {.hold_at_end = PauseTriggers::HoldAtEnd::kAlways}});
    world.run();
    CHECK(world.outcomes.at(id).held);
    world.scheduler.resume({.id = id, .tokens = words(5, 12), .keep_pending = true});
    world.run();
    const Event& admitted = last_place(world, id);
    CHECK(admitted.source == PrefixSource::kHold);
    CHECK_EQ(admitted.reused, 41);
    CHECK_EQ(admitted.prefill_total, 13);
}

TEST_MAIN()
