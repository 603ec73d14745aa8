// A generation that an earlier process began: wherever that one ended, the outcome is the same.
#include "check.h"
#include "fake_matcher.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

std::vector<Token> first(const std::vector<Token>& tokens, std::size_t count) {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count)};
}

// Runs `request` to its end or hold, then once more from each of its tokens.
void check_everywhere(const SubmitRequest& request) {
    World whole(streams(4));
    const SequenceId id = whole.submit(SubmitRequest(request));
    whole.run();
    const Outcome& expected = whole.outcomes.at(id);
    CHECK(expected.finished || expected.held);
    for (std::size_t cut = 0; cut <= expected.sampled.size(); ++cut) {
        World world(streams(4));
        SubmitRequest begun(request);
        begun.begun = first(expected.sampled, cut);
        const SequenceId again = world.submit(std::move(begun));
        world.run();
        const Outcome& outcome = world.outcomes.at(again);
        CHECK_EQ(outcome.sampled, expected.sampled);
        CHECK_EQ(outcome.text, expected.text);
        CHECK(outcome.kinds == expected.kinds);
        CHECK_EQ(outcome.finished, expected.finished);
        CHECK_EQ(outcome.held, expected.held);
        CHECK(outcome.finish == expected.finish);
        CHECK_EQ(outcome.stop_string, expected.stop_string);
        CHECK_EQ(outcome.usage.generated_tokens, expected.usage.generated_tokens);
        CHECK_EQ(outcome.usage.prompt_tokens, expected.usage.prompt_tokens);
        if (request.top_logprobs >= 0) CHECK_EQ(outcome.logprobs.size(), outcome.sampled.size());
    }
}

}  // namespace

TEST(it_ends_at_the_same_limit) {
    check_everywhere({.prompt = words(1, 20), .limits = {.max_tokens = 12}});
}

TEST(it_ends_at_the_same_stop_string) {
    World world(streams(2));
    const auto said = world.reference(words(2, 20), 9);
    std::string stop;
    for (const Token token : {said[6], said[7]})
        stop += world.backend.piece(token);
    check_everywhere(
        {.prompt = words(2, 20), .limits = {.max_tokens = 30}, .stop = {std::move(stop)}});
}

TEST(it_has_all_log_probabilities) {
    check_everywhere({.prompt = words(3, 20), .limits = {.max_tokens = 8}, .top_logprobs = 2});
}

TEST(its_grammar_stands_where_it_stood) {
    for (const bool forced : {true, false}) {
        SubmitRequest request{.prompt = words(4, 20), .limits = {.max_tokens = 64}};
        request.grammar = texts({"{\"alpha\":1}", "{\"beta\":2}"});
        request.forced_tokens = forced;
        check_everywhere(request);
    }
}

TEST(it_is_held_at_the_same_call) {
    SubmitRequest request{.prompt = words(5, 20), .limits = {.max_tokens = 64}};
    request.grammar = texts({"<tool_call>f(1)</tool_call>"});
    request.pause = {.call_open = "<tool_call>",
                     .call_close = "</tool_call>",
                     .hold_at_end = PauseTriggers::HoldAtEnd::kAfterCall};
    check_everywhere(request);
}

TEST(its_rows_are_computed_together) {
    World world(streams(2));
    SubmitRequest request{.prompt = words(6, 20), .limits = {.max_tokens = 40}};
    request.begun = world.reference(words(6, 20), 30);
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK_EQ(world.outcomes.at(id).sampled, world.reference(words(6, 20), 40));
    // The prompt and what was begun, then a row for each of nine tokens.
    CHECK_EQ(world.steps.size(), 10u);
    CHECK_EQ(world.outcomes.at(id).usage.prefilled_tokens, 20);
}

TEST(a_reader_that_stops_gets_it_in_parts) {
    World world(streams(2));
    SubmitRequest request{.prompt = words(7, 20), .limits = {.max_tokens = 40, .window = 4}};
    request.begun = world.reference(words(7, 20), 30);
    const SequenceId id = world.submit(std::move(request));
    while (!world.outcomes[id].finished) {
        world.run();
        world.scheduler.acknowledge(id, 4);
    }
    CHECK_EQ(world.outcomes.at(id).sampled, world.reference(words(7, 20), 40));
}

// They take their turn among the prefills, whose rows of a step are limited.
TEST(others_decode_meanwhile) {
    World world(streams(4, 1024), {.parallel = 4, .step_token_budget = 64});
    const SequenceId other = world.submit(words(8, 10), 40);
    world.step();
    SubmitRequest request{.prompt = words(9, 20), .limits = {.max_tokens = 310}};
    request.begun = world.reference(words(9, 20), 300);
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK_EQ(world.outcomes.at(id).sampled, world.reference(words(9, 20), 310));
    CHECK_EQ(world.outcomes.at(other).sampled, world.reference(words(8, 10), 40));
}

TEST_MAIN()
