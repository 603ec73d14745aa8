// Holds: what is kept, what a resume costs, and every way a hold ends.
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

using HoldAtEnd = PauseTriggers::HoldAtEnd;

const std::vector<CacheShape> kLayouts = {streams(12), unified(12, 12 * 512)};

PauseTriggers tool_triggers(HoldAtEnd at_end = HoldAtEnd::kAfterCall) {
    return {.call_open = "<tool_call>",
            .call_close = "</tool_call>",
            .hold_at_end = at_end,
            .hold_at_text_after_call = true};
}

SubmitRequest scripted(std::vector<Token> script, HoldAtEnd at_end = HoldAtEnd::kAfterCall) {
    return {.prompt = words(1, 40),
            .sampling = {.script = std::move(script)},
            .pause = tool_triggers(at_end)};
}

std::vector<Token> call(const std::string& body) {
    return joined(joined({kCallOpen}, tokens_of(body)), {kCallClose});
}

}  // namespace

TEST(a_round_of_calls_ends_at_the_end_token) {
    World world(streams(4));
    const SequenceId id = world.submit(
        scripted(joined(tokens_of("ok "), joined(call("a"), joined(call("b"), {kTurn})))));
    world.run();
    const Outcome& outcome = world.outcomes.at(id);
    CHECK(outcome.held);
    CHECK(outcome.pause == PauseReason::kEndToken);
    CHECK(outcome.pending_token);
    CHECK_EQ(outcome.ready, 2);
    CHECK_EQ(outcome.text, std::string("ok <tool_call>a</tool_call><tool_call>b</tool_call>"));
    CHECK_EQ(outcome.sampled.back(), kTurn);
    CHECK_EQ(world.scheduler.stats().held, 1);
}

TEST(text_after_a_call_ends_the_round_and_is_refused) {
    World world(streams(4));
    const SequenceId id = world.submit(scripted(joined(call("a"), tokens_of("\nnow"))));
    world.run();
    const Outcome& outcome = world.outcomes.at(id);
    CHECK(outcome.held);
    CHECK(outcome.pause == PauseReason::kTextAfterCall);
    CHECK(!outcome.pending_token);
    CHECK_EQ(outcome.text, std::string("<tool_call>a</tool_call>\n"));
}

TEST(an_end_without_calls_finishes_unless_told_to_hold) {
    World world(streams(4));
    const SequenceId finishes = world.submit(scripted(tokens_of("hi")));
    const SequenceId holds = world.submit(scripted(tokens_of("hi"), HoldAtEnd::kAlways));
    world.run();
    CHECK(world.outcomes.at(finishes).finished);
    CHECK(world.outcomes.at(holds).held);
    world.scheduler.release(holds, 0);
    world.step();
    CHECK(world.outcomes.at(holds).finish == FinishReason::kReleased);
}

TEST(resume_computes_the_pending_token_and_the_result_only) {
    for (const CacheShape& shape : kLayouts) {
        World world(shape);
        const auto prompt = words(5, 200);
        const SequenceId id = world.submit(prompt, 50);
        for (int i = 0; i < 8; ++i)
            world.step();
        world.scheduler.pause(id);
        world.run();
        CHECK(world.outcomes.at(id).held);
        CHECK(world.outcomes.at(id).pause == PauseReason::kRequested);
        const auto before = world.outcomes.at(id).sampled;
        const auto rows = world.backend.rows();
        const auto result = words(9, 30);
        world.scheduler.resume(
            {.id = id, .tokens = result, .keep_pending = true, .max_tokens = 12});
        world.run();
        const Outcome& outcome = world.outcomes.at(id);
        const auto history = joined(joined(prompt, before), result);
        const std::vector<Token> after(
            outcome.sampled.begin() + static_cast<std::ptrdiff_t>(before.size()),
            outcome.sampled.end());
        CHECK_EQ(after, world.reference(history, 12));
        CHECK_EQ(world.backend.rows() - rows, 1 + 30 + 11);
        CHECK_EQ(outcome.usage.resumed_tokens, 31);
        CHECK_EQ(outcome.usage.prefilled_tokens, 200 + 31);
        CHECK_EQ(outcome.usage.recomputed_tokens, 0);
    }
}

TEST(a_dropped_pending_token_never_enters_the_cache) {
    World world(streams(4));
    const auto prompt = words(5, 20);
    const SequenceId id = world.submit(prompt, 50);
    for (int i = 0; i < 4; ++i)
        world.step();
    world.scheduler.pause(id);
    world.run();
    auto before = world.outcomes.at(id).sampled;
    const std::size_t seen = before.size();
    before.pop_back();
    world.scheduler.resume(
        {.id = id, .tokens = words(9, 3), .keep_pending = false, .max_tokens = 6});
    world.run();
    const auto& sampled = world.outcomes.at(id).sampled;
    const std::vector<Token> after(sampled.begin() + static_cast<std::ptrdiff_t>(seen),
                                   sampled.end());
    CHECK_EQ(after, world.reference(joined(joined(prompt, before), words(9, 3)), 6));
    CHECK_EQ(world.outcomes.at(id).usage.resumed_tokens, 3);
}

TEST(a_hold_survives_any_number_of_other_requests) {
    for (const CacheShape& shape : {streams(4), unified(4, 4 * 512)}) {
        World world(shape, {.parallel = 1, .step_token_budget = 64});
        const auto prompt = words(5, 100);
        const SequenceId id = world.submit(prompt, 50);
        world.step();
        world.step();
        world.scheduler.pause(id);
        world.run();
        const auto before = world.outcomes.at(id).sampled;
        for (std::uint32_t i = 0; i < 20; ++i)
            world.submit(words(50 + i, 300), 5);
        world.run();
        const auto rows = world.backend.rows();
        world.scheduler.resume(
            {.id = id, .tokens = words(9, 10), .keep_pending = true, .max_tokens = 4});
        world.run();
        CHECK_EQ(world.backend.rows() - rows, 11 + 3);
        CHECK_EQ(world.outcomes.at(id).usage.recomputed_tokens, 0);
        CHECK_EQ(world.outcomes.at(id).sampled,
                 joined(before, world.reference(joined(joined(prompt, before), words(9, 10)), 4)));
    }
}

TEST(a_resumed_sequence_goes_before_new_ones) {
    World world(streams(6), {.parallel = 1, .step_token_budget = 64});
    const SequenceId id = world.submit(scripted(joined(call("a"), {kTurn})));
    world.run();
    const SequenceId running = world.submit(words(2, 10), 3);
    world.step();
    const SequenceId queued = world.submit(words(3, 10), 3);
    world.scheduler.resume(
        {.id = id, .tokens = words(9, 10), .keep_pending = true, .max_tokens = 4});
    while (!world.outcomes.at(running).finished)
        world.step();
    while (!world.outcomes.at(id).finished) {
        CHECK(world.outcomes[queued].sampled.empty());
        CHECK(world.step());
    }
}

TEST(a_hold_that_expires_fails_and_frees) {
    World world(streams(4), {.parallel = 2, .step_token_budget = 64, .hold_lease_ms = 1000});
    const SequenceId id = world.submit(scripted(joined(call("a"), {kTurn})));
    world.run();
    world.now = 999;
    world.step();
    CHECK(world.outcomes.at(id).held);
    world.now = 1001;
    world.step();
    CHECK(world.outcomes.at(id).failed);
    CHECK(world.outcomes.at(id).fail == FailCode::kLeaseExpired);
    CHECK_EQ(world.scheduler.stats().cells_used, 0);
}

TEST(when_every_slot_is_held_a_hold_gives_way_and_is_recomputed) {
    World world(streams(3), {.parallel = 3, .step_token_budget = 64});
    std::vector<SequenceId> held;
    for (std::uint32_t i = 0; i < 3; ++i) {
        held.push_back(world.submit(words(i, 40), 50));
        world.step();
        world.scheduler.pause(held.back());
        world.run();
        world.now += 10;
    }
    CHECK_EQ(world.scheduler.stats().held, 3);
    const SequenceId fresh = world.submit(words(9, 40), 5);
    world.run();
    CHECK_EQ(world.outcomes.at(fresh).sampled, world.reference(words(9, 40), 5));
    for (std::uint32_t i = 0; i < 3; ++i) {
        const auto before = world.outcomes.at(held[i]).sampled;
        world.scheduler.resume({.id = held[i], .tokens = words(77, 5), .max_tokens = 5});
        world.run();
        CHECK_EQ(
            world.outcomes.at(held[i]).sampled,
            joined(before, world.reference(joined(joined(words(i, 40), before), words(77, 5)), 5)));
    }
    CHECK(world.outcomes.at(held[2]).usage.recomputed_tokens >= 40);
    CHECK_EQ(world.outcomes.at(held[0]).usage.recomputed_tokens, 0);
}

TEST(a_resume_that_does_not_fit_fails_by_name) {
    World world(streams(4, 128));
    const SequenceId id = world.submit(scripted(joined(call("a"), {kTurn})));
    world.run();
    world.scheduler.resume(
        {.id = id, .tokens = words(9, 100), .keep_pending = true, .max_tokens = 4});
    world.step();
    CHECK(world.outcomes.at(id).fail == FailCode::kContextLength);
}

TEST(a_held_sequence_evicted_for_cells_is_recomputed_exactly) {
    World world(unified(6, 150, 140), {.parallel = 2, .step_token_budget = 64});
    const auto prompt = words(5, 60);
    const SequenceId held = world.submit(prompt, 50);
    world.step();
    world.step();
    world.scheduler.pause(held);
    world.run();
    const auto before = world.outcomes.at(held).sampled;
    const SequenceId large = world.submit(words(6, 100), 30);
    world.run();
    CHECK(world.outcomes.at(large).finished);
    CHECK_EQ(world.outcomes.at(large).sampled, world.reference(words(6, 100), 30));
    world.scheduler.resume(
        {.id = held, .tokens = words(9, 10), .keep_pending = true, .max_tokens = 5});
    world.run();
    const Outcome& outcome = world.outcomes.at(held);
    CHECK(outcome.finished);
    CHECK_EQ(outcome.sampled,
             joined(before, world.reference(joined(joined(prompt, before), words(9, 10)), 5)));
    CHECK(outcome.usage.recomputed_tokens >= 60);
}

TEST(a_hold_whose_cells_were_evicted_expires_too) {
    World world(unified(6, 150, 140),
                {.parallel = 2, .step_token_budget = 64, .hold_lease_ms = 1000});
    const SequenceId held = world.submit(words(5, 60), 50);
    world.step();
    world.scheduler.pause(held);
    world.run();
    world.submit(words(6, 100), 30);
    world.run();
    CHECK_EQ(world.scheduler.stats().held, 1);
    world.now += 999;
    world.step();
    CHECK(world.outcomes.at(held).held);
    world.now += 1;
    world.step();
    CHECK(world.outcomes.at(held).failed);
    CHECK(world.outcomes.at(held).fail == FailCode::kLeaseExpired);
    CHECK_EQ(world.scheduler.stats().held, 0);
}

TEST(a_leased_round_is_there_when_its_caller_returns) {
    World world(streams(4), {.parallel = 1, .step_token_budget = 64});
    SubmitRequest request = scripted(joined(call("a"), {kTurn}));
    request.retain = false;
    request.lease_ms = 5000;
    const auto prompt = request.prompt;
    const SequenceId id = world.submit(std::move(request));
    world.run();
    world.scheduler.release(id, 0);
    for (std::uint32_t i = 0; i < 10; ++i)
        world.submit(words(50 + i, 300), 5);
    world.run();
    const auto rows = world.backend.rows();
    const auto returned = joined(joined(prompt, world.outcomes.at(id).sampled), words(9, 10));
    const SequenceId next = world.submit(returned, 4);
    world.run();
    CHECK_EQ(world.backend.rows() - rows, 1 + 10 + 3);  // the end token, the result, the answer
    CHECK_EQ(world.outcomes.at(next).sampled, world.reference(returned, 4));
}

TEST(a_hold_keeps_its_cells_where_a_smaller_chunk_fits) {
    World world(unified(4, 100), {.parallel = 3, .step_token_budget = 64});
    const SequenceId held = world.submit(words(5, 39), 50);
    world.step();
    world.scheduler.pause(held);
    world.run();
    CHECK(world.outcomes.at(held).held);
    // Together they want 60 of 60 cells or so; one that is done leaves its cells to the other.
    world.submit(words(6, 31), 1);
    world.submit(words(7, 31), 1);
    world.run();
    const auto rows = world.backend.rows();
    world.scheduler.resume(
        {.id = held, .tokens = words(9, 3), .keep_pending = true, .max_tokens = 1});
    world.run();
    CHECK_EQ(world.backend.rows() - rows, 4);
    CHECK_EQ(world.outcomes.at(held).usage.recomputed_tokens, 0);
}

namespace {

class RecordingSampler final : public Sampler {
   public:
    RecordingSampler(std::vector<Token> script, std::vector<Token>& observed)
        : script_(std::move(script)), observed_(observed) {}
    Token sample(std::span<const float>, TokenMask) override { return script_.at(next_++); }
    void observe(std::span<const Token> tokens) override {
        observed_.insert(observed_.end(), tokens.begin(), tokens.end());
    }
    void observe_anew(std::span<const Token> tokens) override {
        observed_.assign(tokens.begin(), tokens.end());
    }

   private:
    std::vector<Token> script_;
    std::size_t next_ = 0;
    std::vector<Token>& observed_;
};

class RecordingSamplers final : public FakeBackend {
   public:
    using FakeBackend::FakeBackend;
    std::unique_ptr<Sampler> make_sampler(const SamplingParams& params) override {
        return std::make_unique<RecordingSampler>(*params.script, observed);
    }
    std::vector<Token> observed;
};

}  // namespace

TEST(a_token_refused_after_a_call_is_no_token_of_the_penalties) {
    RecordingSamplers backend(streams(2));
    Scheduler scheduler({.parallel = 1, .step_token_budget = 64}, backend);
    SubmitRequest request{.id = 1, .prompt = words(1, 5), .limits = {.max_tokens = 20}};
    request.sampling.script = {kCallOpen, 'f', kCallClose, 'x', 'y', kEnd};
    request.pause = {
        .call_open = "<tool_call>", .call_close = "</tool_call>", .hold_at_text_after_call = true};
    scheduler.submit(std::move(request));
    while (scheduler.step(0)) {
    }
    const auto said = joined(words(1, 5), {kCallOpen, 'f', kCallClose});
    CHECK_EQ(backend.observed, said);  // without the x
    scheduler.resume({.id = 1, .tokens = words(2, 3), .keep_pending = true, .max_tokens = 5});
    while (scheduler.step(0)) {
    }
    CHECK_EQ(backend.observed, joined(joined(said, words(2, 3)), {'y', kEnd}));
}

TEST(an_end_that_a_resume_drops_is_no_token_of_the_penalties) {
    RecordingSamplers backend(streams(2));
    Scheduler scheduler({.parallel = 1, .step_token_budget = 64}, backend);
    SubmitRequest request{.id = 1, .prompt = words(1, 5), .limits = {.max_tokens = 20}};
    request.sampling.script = {'f', kEnd, 'y', kEnd};
    request.pause = {.hold_at_end = PauseTriggers::HoldAtEnd::kAlways};
    scheduler.submit(std::move(request));
    while (scheduler.step(0)) {
    }
    CHECK_EQ(backend.observed, joined(words(1, 5), {'f', kEnd}));
    scheduler.resume({.id = 1, .tokens = words(2, 3), .keep_pending = false, .max_tokens = 1});
    while (scheduler.step(0)) {
    }
    CHECK_EQ(backend.observed, joined(joined(words(1, 5), {'f'}), joined(words(2, 3), {'y'})));
}

TEST_MAIN()
