// Extensions: a hold is prefilled with what its resume will begin with. Whatever the guess was, the
// resume samples what it would have sampled without it.
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

const std::vector<CacheShape> kLayouts = {streams(12), unified(12, 12 * 512)};

// A sequence that is held after some tokens.
struct Held {
    SequenceId id = 0;
    std::vector<Token> prompt = {};
    std::vector<Token> before = {};  // sampled; the last one is pending
};

Held hold(World& world, std::uint32_t seed = 5, std::size_t length = 100) {
    Held held{.prompt = words(seed, length)};
    held.id = world.submit(held.prompt, 50);
    while (world.outcomes[held.id].sampled.size() < 3)
        world.step();
    world.scheduler.pause(held.id);
    while (!world.outcomes[held.id].held)
        world.step();
    held.before = world.outcomes[held.id].sampled;
    return held;
}

std::vector<Token> first(std::vector<Token> tokens, std::size_t count) {
    tokens.resize(count);
    return tokens;
}

void extend(World& world, const Held& held, std::vector<Token> tokens, bool keep_pending = true) {
    world.scheduler.extend(
        {.id = held.id, .tokens = std::move(tokens), .keep_pending = keep_pending});
}

// Resumes and checks every token that follows.
void resume(World& world, const Held& held, const std::vector<Token>& result,
            std::int32_t count = 6, bool keep_pending = true) {
    world.scheduler.resume(
        {.id = held.id, .tokens = result, .keep_pending = keep_pending, .max_tokens = count});
    world.run();
    auto history = joined(held.prompt, held.before);
    if (!keep_pending) history.pop_back();
    const auto after = world.reference(joined(history, result), static_cast<std::size_t>(count));
    CHECK(world.outcomes.at(held.id).finished);
    CHECK_EQ(world.outcomes.at(held.id).sampled, joined(held.before, after));
}

}  // namespace

TEST(a_resume_computes_only_what_the_extension_did_not) {
    for (const CacheShape& shape : kLayouts) {
        for (const bool keep_pending : {true, false}) {
            World world(shape);
            const Held held = hold(world);
            const auto result = words(9, 150);
            const auto rows = world.backend.rows();
            const std::int32_t pending = keep_pending ? 1 : 0;
            extend(world, held, first(result, 40), keep_pending);
            world.run();
            CHECK_EQ(world.backend.rows() - rows, 40 + pending);
            CHECK_EQ(world.outcomes.at(held.id).extended, 40);
            extend(world, held, first(result, 120), keep_pending);
            world.run();
            CHECK_EQ(world.backend.rows() - rows, 120 + pending);
            CHECK(world.outcomes.at(held.id).held);
            CHECK_EQ(world.scheduler.stats().held, 1);

            resume(world, held, result, 6, keep_pending);
            CHECK_EQ(world.backend.rows() - rows, 150 + pending + 5);
            const Usage& usage = world.outcomes.at(held.id).usage;
            CHECK_EQ(usage.resumed_tokens, 150 + pending);
            CHECK_EQ(usage.prefilled_tokens, 100 + 150 + pending);
            CHECK_EQ(usage.recomputed_tokens, 0);
            const EngineStats stats = world.scheduler.stats();
            CHECK_EQ(stats.prefilled_tokens, stats.prompt_tokens + stats.resumed_tokens);
            CHECK_EQ(stats.extended_tokens, 120 + pending);
            CHECK_EQ(stats.discarded_tokens, 0);
        }
    }
}

TEST(a_wrong_guess_leaves_the_cache) {
    for (const CacheShape& shape : kLayouts) {
        World world(shape);
        const Held held = hold(world);
        const auto result = words(9, 100);
        extend(world, held, joined(first(result, 30), words(77, 50)));
        world.run();
        extend(world, held, joined(first(result, 60), words(78, 10)));
        world.run();
        CHECK_EQ(world.scheduler.stats().discarded_tokens, 50);
        resume(world, held, result);
        const EngineStats stats = world.scheduler.stats();
        CHECK_EQ(stats.discarded_tokens, 50);
        CHECK_EQ(stats.prefilled_tokens, stats.prompt_tokens + stats.resumed_tokens + 50);
        CHECK_EQ(stats.recomputed_tokens, 0);
        CHECK_EQ(world.outcomes.at(held.id).usage.resumed_tokens, 101);
    }
}

TEST(after_a_wrong_guess_a_twentieth_of_the_sequence_is_risked) {
    for (const std::size_t length : {100, 2000}) {
        World world(streams(4, 4096));
        const Held held = hold(world, 5, length);
        const auto result = words(9, 100);
        extend(world, held, joined(first(result, 30), words(77, 50)));
        world.run();
        const auto rows = world.backend.rows();
        extend(world, held, result);
        world.run();
        // Of 2,003 tokens a twentieth, without the 50 that were wrong and the 30 that are there.
        CHECK_EQ(world.backend.rows() - rows, length == 100 ? 0 : 100 - 50 - 30);
        resume(world, held, result);
        CHECK_EQ(world.scheduler.stats().discarded_tokens, 50);
    }
}

TEST(a_pending_token_that_was_guessed_wrongly) {
    for (const bool keep_pending : {true, false}) {
        World world(streams(4));
        const Held held = hold(world);
        const auto result = words(9, 50);
        extend(world, held, result, !keep_pending);
        world.run();
        resume(world, held, result, 6, keep_pending);
    }
}

TEST(a_result_that_is_known_whole_costs_one_row_at_its_resume) {
    for (const CacheShape& shape : kLayouts) {
        World world(shape);
        const Held held = hold(world);
        const auto result = words(9, 50);
        extend(world, held, result);
        world.run();
        const auto rows = world.backend.rows();
        resume(world, held, result, 1);
        CHECK_EQ(world.backend.rows() - rows, 1);
        CHECK_EQ(world.outcomes.at(held.id).usage.prefilled_tokens, 100 + 51 + 1);
    }
}

TEST(a_resume_that_comes_before_the_extension_was_computed) {
    World world(streams(4));
    const Held held = hold(world);
    const auto result = words(9, 300);
    extend(world, held, first(result, 250));
    world.step();
    CHECK_EQ(world.outcomes.at(held.id).extended, 63);  // and the pending token
    resume(world, held, result);
    CHECK_EQ(world.scheduler.stats().discarded_tokens, 0);
}

TEST(running_sequences_go_first) {
    World world(streams(6, 1024, 512), {.parallel = 4, .step_token_budget = 512});
    const Held held = hold(world);
    const SequenceId others[] = {world.submit(words(20, 40), 200),
                                 world.submit(words(21, 40), 200)};
    world.step();
    world.steps.clear();
    const auto result = words(9, 500);
    extend(world, held, first(result, 20));
    for (int i = 0; i < 5; ++i)
        world.step();
    CHECK_EQ(world.outcomes.at(held.id).extended, 0);  // too few for a pass of their own
    extend(world, held, first(result, 400));
    for (int i = 0; i < 12; ++i) {
        world.step();
        CHECK_EQ(world.steps.back().decode_rows, 2);
        CHECK(world.steps.back().prefill_rows <= 128);
    }
    // 128 rows a step, the pending token among them; what is left is too little again.
    CHECK_EQ(world.outcomes.at(held.id).extended, 383);
    // A prompt takes what it needs of a step.
    extend(world, held, first(result, 480));
    world.submit(words(22, 510), 3);
    world.step();
    CHECK_EQ(world.outcomes.at(held.id).extended, 383);
    for (const SequenceId id : others)
        world.scheduler.cancel(id, 0);
    world.run();
    CHECK_EQ(world.outcomes.at(held.id).extended, 480);
    resume(world, held, result);
}

TEST(a_few_rows_are_computed_when_nothing_else_is) {
    World world(streams(4));
    const Held held = hold(world);
    extend(world, held, words(9, 2));
    CHECK(world.step());
    CHECK_EQ(world.outcomes.at(held.id).extended, 2);
    CHECK(!world.step());
}

TEST(an_extension_takes_no_cells_that_others_need) {
    World world(unified(6, 200, 190), {.parallel = 2, .step_token_budget = 64});
    const Held held = hold(world, 5, 60);
    const auto result = words(9, 80);
    extend(world, held, result);
    world.run();
    CHECK_EQ(world.outcomes.at(held.id).extended, 80);
    // 200 cells: the hold has 63 of its own and 80 of the extension.
    const SequenceId large = world.submit(words(6, 100), 20);
    world.run();
    CHECK_EQ(world.outcomes.at(large).sampled, world.reference(words(6, 100), 20));
    CHECK(world.outcomes.at(held.id).held);
    CHECK_EQ(world.scheduler.stats().recomputed_tokens, 0);
    // It is not tried again in this hold.
    extend(world, held, result);
    CHECK(!world.step());
    resume(world, held, result);
    CHECK_EQ(world.outcomes.at(held.id).usage.recomputed_tokens, 0);
}

TEST(an_extension_waits_while_there_are_no_cells) {
    World world(unified(6, 200, 190), {.parallel = 2, .step_token_budget = 64});
    const Held held = hold(world, 5, 60);
    const SequenceId large = world.submit(words(6, 100), 30);
    for (int i = 0; i < 4; ++i)
        world.step();
    extend(world, held, words(9, 80));
    while (!world.outcomes.at(large).finished) {
        CHECK_EQ(world.outcomes.at(held.id).extended, 0);
        world.step();
    }
    CHECK_EQ(world.outcomes.at(large).usage.recomputed_tokens, 0);
    world.run();
    CHECK_EQ(world.outcomes.at(held.id).extended, 80);
    resume(world, held, words(9, 80));
}

TEST(an_extended_hold_that_gives_way_is_recomputed_exactly) {
    World world(streams(1), {.parallel = 1, .step_token_budget = 64});
    const Held held = hold(world);
    const auto result = words(9, 60);
    extend(world, held, first(result, 50));
    world.run();
    const SequenceId other = world.submit(words(9, 40), 5);
    world.run();
    CHECK(world.outcomes.at(other).finished);
    extend(world, held, result);  // it has no slot to be prefilled in
    CHECK(!world.step());
    resume(world, held, result);
    CHECK(world.outcomes.at(held.id).usage.recomputed_tokens >= 100);
}

TEST(every_way_a_hold_ends_ends_its_extension) {
    for (int way = 0; way < 3; ++way) {
        World world(streams(4), {.parallel = 2, .step_token_budget = 64, .hold_lease_ms = 1000});
        const Held held = hold(world);
        extend(world, held, words(9, 200));
        world.step();
        if (way == 0) world.scheduler.cancel(held.id, 0);
        if (way == 1) world.scheduler.release(held.id, 0);
        if (way == 2) world.now = 2000;
        world.step();
        CHECK(!world.step());
        const EngineStats stats = world.scheduler.stats();
        CHECK_EQ(stats.held, 0);
        CHECK_EQ(stats.cells_used, 0);
        // What was computed was asked for.
        CHECK_EQ(stats.prefilled_tokens, stats.prompt_tokens + stats.resumed_tokens);
        extend(world, held, words(9, 10));
        CHECK(!world.step());
    }
}

TEST(what_extended_a_hold_is_there_for_others) {
    World world(streams(4));
    const Held held = hold(world);
    const auto result = words(9, 100);
    extend(world, held, result);
    world.run();
    world.scheduler.release(held.id, 0);
    world.step();
    const auto prompt = joined(joined(joined(held.prompt, held.before), result), words(3, 5));
    const SequenceId next = world.submit(prompt, 3);
    world.run();
    CHECK_EQ(world.outcomes.at(next).usage.cached_tokens, 100 + 3 + 1 + 100);
    CHECK_EQ(world.outcomes.at(next).sampled, world.reference(prompt, 3));
}

TEST(an_extension_that_does_not_fit_is_ignored) {
    World world(streams(4, 128));
    const Held held = hold(world);
    extend(world, held, words(9, 24));
    CHECK(!world.step());
    extend(world, held, words(9, 23));
    CHECK(world.step());
    resume(world, held, words(9, 20), 1);
}

TEST(a_model_that_cannot_truncate_computes_a_wrong_guess_anew) {
    CacheShape shape = streams(4);
    shape.partial_truncate = false;
    World world(shape);
    const Held held = hold(world);
    const auto result = words(9, 60);
    extend(world, held, first(result, 50));
    world.run();
    extend(world, held, words(77, 50));
    world.run();
    CHECK_EQ(world.outcomes.at(held.id).extended, 50);
    resume(world, held, result);
    CHECK(world.outcomes.at(held.id).usage.recomputed_tokens >= 100);
}

TEST(a_backend_that_fails_fails_the_hold_that_it_extends) {
    World world(streams(4));
    const Held held = hold(world);
    extend(world, held, words(9, 60));
    world.backend.set_status(world.backend.decode_calls(), DecodeStatus::kFailed);
    world.step();
    CHECK(world.outcomes.at(held.id).fail == FailCode::kDecodeFailed);
    CHECK_EQ(world.scheduler.stats().cells_used, 0);
}

TEST_MAIN()
