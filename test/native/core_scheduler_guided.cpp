// Sequences with a grammar: what is sampled, what is forced, how they end, hold and fail.
#include <algorithm>
#include <set>

#include "fake_matcher.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

SubmitRequest guided(std::shared_ptr<const Grammar> grammar, std::vector<Token> script = {}) {
    SubmitRequest request{.prompt = words(1, 20), .limits = {.max_tokens = 64}};
    request.grammar = std::move(grammar);
    if (!script.empty()) request.sampling.script = std::move(script);
    return request;
}

SubmitRequest without_forcing(SubmitRequest request) {
    request.forced_tokens = false;
    return request;
}

}  // namespace

TEST(only_allowed_tokens_are_sampled_and_a_complete_text_ends) {
    for (const bool forced : {true, false}) {
        World world(streams(4));
        auto request = guided(texts({"{\"a\":1}", "{\"b\":22}"}));
        request.forced_tokens = forced;
        const SequenceId id = world.submit(std::move(request));
        world.run();
        const Outcome& outcome = world.outcomes.at(id);
        CHECK(outcome.finished);
        CHECK(outcome.finish == FinishReason::kEnd);
        CHECK(outcome.text == "{\"a\":1}" || outcome.text == "{\"b\":22}");
        CHECK_EQ(outcome.sampled.back(), kEnd);
        CHECK_EQ(outcome.usage.generated_tokens, static_cast<int>(outcome.sampled.size()));
    }
}

TEST(forced_tokens_change_the_steps_and_nothing_else) {
    Outcome outcomes[2];
    int steps[2];
    for (const bool forced : {true, false}) {
        World world(streams(4));
        auto request = guided(texts({"{\"alpha\":1}", "{\"beta\":2}"}));
        request.forced_tokens = forced;
        const SequenceId id = world.submit(std::move(request));
        world.run();
        outcomes[forced] = world.outcomes.at(id);
        steps[forced] = static_cast<int>(world.steps.size());
        int rows = 0;
        for (const StepReport& step : world.steps)
            rows += step.prefill_rows + step.decode_rows;
        // The end of the text never enters the cache: forced, all behind the choice.
        const int generated = static_cast<int>(outcomes[forced].sampled.size());
        CHECK_EQ(rows, 20 + (forced ? 2 : generated - 2));
    }
    CHECK(outcomes[0].sampled == outcomes[1].sampled);
    CHECK_EQ(outcomes[0].usage.prefilled_tokens, outcomes[1].usage.prefilled_tokens);
    CHECK_EQ(steps[0], static_cast<int>(outcomes[0].sampled.size()) - 1);
    CHECK_EQ(steps[1], 2);  // the brace, then one choice
}

TEST(a_sequence_beside_a_guided_one_is_not_changed) {
    World world(streams(4));
    const auto prompt = words(7, 30);
    const SequenceId free = world.submit(prompt, 12);
    const SequenceId id = world.submit(guided(texts({"{\"alpha\":1}", "{\"beta\":2}"})));
    world.run();
    CHECK(world.outcomes.at(free).sampled == world.reference(prompt, 12));
    CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
}

TEST(an_end_token_is_allowed_only_where_the_text_may_end) {
    World world(streams(4));
    // The script wants to end at once, and again after "ab", where it may.
    const auto script = joined({kEnd, 'b'}, {kTurn});
    const SequenceId id = world.submit(without_forcing(guided(texts({"ab", "abcd"}), script)));
    world.run();
    const Outcome& outcome = world.outcomes.at(id);
    CHECK_EQ(outcome.text, std::string("ab"));
    CHECK_EQ(outcome.sampled.back(), kTurn);
    CHECK(outcome.finish == FinishReason::kEnd);
}

TEST(a_complete_text_costs_no_step_for_its_end) {
    World world(streams(4));
    const SequenceId id = world.submit(guided(texts({"x"})));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("x"));
    CHECK_EQ(static_cast<int>(world.steps.size()), 1);
    CHECK(world.outcomes.at(id).sampled == (std::vector<Token>{'x', kEnd}));
}

TEST(a_text_complete_at_its_limit_has_ended) {
    World world(streams(4));
    auto request = guided(texts({"abc"}));
    request.limits.max_tokens = 3;
    const SequenceId id = world.submit(std::move(request));
    auto cut = guided(texts({"abcd"}));
    cut.limits.max_tokens = 3;
    const SequenceId cut_id = world.submit(std::move(cut));
    world.run();
    CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
    CHECK_EQ(world.outcomes.at(id).text, std::string("abc"));
    CHECK_EQ(world.outcomes.at(id).usage.generated_tokens, 3);
    CHECK(world.outcomes.at(cut_id).finish == FinishReason::kLength);
    CHECK_EQ(world.outcomes.at(cut_id).text, std::string("abc"));
}

TEST(forced_tokens_close_calls_and_hold) {
    World world(streams(4));
    auto request = guided(texts({"<tool_call>{\"a\":1}</tool_call>"}));
    request.pause = {.call_open = "<tool_call>",
                     .call_close = "</tool_call>",
                     .hold_at_end = PauseTriggers::HoldAtEnd::kAfterCall,
                     .hold_at_text_after_call = true};
    const SequenceId id = world.submit(std::move(request));
    world.run();
    const Outcome& outcome = world.outcomes.at(id);
    CHECK(outcome.held);
    CHECK(outcome.pause == PauseReason::kEndToken);
    CHECK_EQ(outcome.ready, 1);
    CHECK_EQ(outcome.text, std::string("<tool_call>{\"a\":1}</tool_call>"));
    CHECK(outcome.pending_token);
}

TEST(forced_text_after_a_call_is_refused) {
    World world(streams(4));
    auto request = guided(texts({"<tool_call>a</tool_call>\nmore"}));
    request.pause = {.call_open = "<tool_call>",
                     .call_close = "</tool_call>",
                     .hold_at_end = PauseTriggers::HoldAtEnd::kAfterCall,
                     .hold_at_text_after_call = true};
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK(world.outcomes.at(id).pause == PauseReason::kTextAfterCall);
    CHECK_EQ(world.outcomes.at(id).text, std::string("<tool_call>a</tool_call>\n"));
    // The grammar stands where the text stands: its next token is the one that was refused.
    world.scheduler.resume({.id = id, .tokens = words(3, 4)});
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("<tool_call>a</tool_call>\nmore"));
    CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
}

TEST(a_stop_string_in_forced_text_stops_there) {
    World world(streams(4));
    auto request = guided(texts({"one two three"}));
    request.stop = {" two"};
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK(world.outcomes.at(id).finish == FinishReason::kStopString);
    CHECK_EQ(world.outcomes.at(id).text, std::string("one"));
}

TEST(a_reader_that_stops_gets_no_forced_tokens_and_blocks_nobody) {
    World world(streams(4));
    auto request = guided(texts({"abcdefghijklmnop"}));
    request.limits.window = 4;
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("abcd"));
    // Its forced rows are in the cache: a prompt that continues them need not wait for the reader.
    const auto prompt = joined(joined(world.prompts.at(id), tokens_of("abcd")), words(5, 3));
    const SequenceId other = world.submit(prompt, 4);
    world.run();
    CHECK(world.outcomes.at(other).finished);
    for (int i = 0; i < 4; ++i) {
        world.scheduler.acknowledge(id, 4);
        world.run();
    }
    CHECK_EQ(world.outcomes.at(id).text, std::string("abcdefghijklmnop"));
    CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
}

// What is drawn behind a forced text depends on how often was drawn before it.
TEST(a_seeded_answer_is_the_same_for_a_reader_that_stops_in_forced_text) {
    const auto grammar = [] {
        std::vector<std::string> all;
        for (const char* first : {"a", "b", "c", "d"})
            for (const char* last : {"e", "f", "g", "h"})
                for (const char* end : {"i", "j", "k"})
                    all.push_back(std::string(first) + "forced " + last + "again " + end);
        return texts(all);
    };
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
        std::set<std::string> told;
        for (const std::int32_t window : {1, 2, 3, 5, 4096}) {
            World world(streams(4));
            auto request = guided(grammar());
            request.sampling.temperature = 1.0f;
            request.sampling.seed = seed;
            request.limits.window = window;
            const SequenceId id = world.submit(std::move(request));
            while (!world.outcomes[id].finished) {
                world.run();
                CHECK(world.outcomes.at(id).sampled.size() <= 17);
                world.scheduler.acknowledge(id, 1);
            }
            told.insert(world.outcomes.at(id).text);
        }
        CHECK_EQ(told.size(), 1u);
    }
}

TEST(a_pause_request_comes_before_forced_tokens) {
    World world(streams(4));
    const SequenceId id = world.submit(guided(texts({"abcdef"})));
    world.scheduler.pause(id);
    world.run();
    CHECK(world.outcomes.at(id).held);
    CHECK_EQ(world.outcomes.at(id).text, std::string("a"));
    world.scheduler.resume({.id = id, .tokens = words(4, 5)});
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("abcdef"));
}

TEST(a_dropped_pending_token_is_taken_back) {
    World world(streams(4));
    const SequenceId id = world.submit(guided(texts({"abcdef"})));
    world.scheduler.pause(id);
    world.run();
    CHECK(world.outcomes.at(id).pending_token);
    world.scheduler.resume({.id = id, .tokens = words(4, 5), .keep_pending = false});
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("aabcdef"));
}

TEST(a_round_begins_with_the_grammar_it_is_given) {
    for (const bool drop : {true, false}) {
        World world(streams(4));
        auto request = guided(texts({"call"}));
        request.pause.hold_at_end = PauseTriggers::HoldAtEnd::kAlways;
        const SequenceId id = world.submit(std::move(request));
        world.run();
        CHECK(world.outcomes.at(id).held);
        world.scheduler.resume(
            {.id = id, .tokens = words(4, 5), .keep_pending = !drop, .grammar = texts({"done"})});
        world.run();
        CHECK(world.outcomes.at(id).held);
        CHECK_EQ(world.outcomes.at(id).text, std::string("calldone"));
        world.scheduler.resume({.id = id,
                                .tokens = words(4, 5),
                                .max_tokens = 9,
                                .grammar = std::shared_ptr<const Grammar>()});
        world.run();
        CHECK(world.outcomes.at(id).finish == FinishReason::kLength);
        CHECK_EQ(world.outcomes.at(id).usage.generated_tokens, 4 + 1 + 4 + 1 + 9);
    }
}

TEST(the_grammar_survives_preemption) {
    // Three sequences of up to 57 cells in 64: some must give theirs up and recompute.
    const std::string text = "abcdefghijklmnopqrstuvwxyzabcdefghij";
    for (const bool forced : {true, false}) {
        World world(unified(4, 64, 63, 16), {.parallel = 4, .step_token_budget = 16});
        std::vector<SequenceId> ids;
        for (std::uint32_t i = 0; i < 3; ++i) {
            auto request = guided(texts({text + "1", text + "2"}));
            request.prompt = words(10 + i, 20);
            request.forced_tokens = forced;
            ids.push_back(world.submit(std::move(request)));
        }
        world.run();
        std::int32_t recomputed = 0;
        for (const SequenceId id : ids) {
            const Outcome& outcome = world.outcomes.at(id);
            CHECK(outcome.finish == FinishReason::kEnd);
            CHECK(outcome.text == text + "1" || outcome.text == text + "2");
            recomputed += outcome.usage.recomputed_tokens;
            // Every row is prefill, recomputed or decoded, none twice.
            CHECK_EQ(outcome.usage.prefilled_tokens - outcome.usage.recomputed_tokens, 20);
        }
        CHECK(recomputed > 0);
    }
}

TEST(a_grammar_in_error_fails_its_own_sequence) {
    for (const int after : {0, 1, 3}) {
        for (const bool forced : {true, false}) {
            World world(streams(4));
            const auto prompt = words(7, 30);
            const SequenceId other = world.submit(prompt, 12);
            auto request = guided(std::make_shared<const FakeGrammar>(
                FakeGrammarOptions{.texts = {"abcdef", "abcxyz"}, .fails_after = after}));
            request.forced_tokens = forced;
            const SequenceId id = world.submit(std::move(request));
            world.run();
            CHECK(world.outcomes.at(id).failed);
            CHECK(world.outcomes.at(id).fail == FailCode::kGrammarFailed);
            CHECK(world.outcomes.at(other).sampled == world.reference(prompt, 12));
        }
    }
}

TEST(a_grammar_without_memory_fails_its_sequence) {
    World world(streams(4));
    const SequenceId id = world.submit(guided(std::make_shared<const FakeGrammar>(
        FakeGrammarOptions{.texts = {"abc"}, .has_memory = false})));
    world.run();
    CHECK(world.outcomes.at(id).fail == FailCode::kGrammarFailed);
}

TEST(a_text_is_closed_where_its_limit_would_cut_it) {
    // Ten or more tokens of the long text leave no room for its end; the short one needs six.
    const auto grammar =
        texts({"[aaaaaaaaaaaaaaaaaaaa]", "[aaaa]", "[aaaaaaaaa]", "[aaaaaaaaaaaaaa]"});
    const std::vector<std::pair<std::int32_t, std::string>> expected = {
        {5, "[aaaa"},
        {6, "[aaaa]"},
        {7, "[aaaa]"},
        {11, "[aaaaaaaaa]"},
        {40, "[aaaaaaaaaaaaaaaaaaaa]"}};
    for (const auto& [limit, text] : expected) {
        for (const bool forced : {true, false}) {
            World world(streams(4));
            auto request = guided(grammar, std::vector<Token>(30, 'a'));
            request.limits.max_tokens = limit;
            request.forced_tokens = forced;
            request.close_at_limit = true;
            const SequenceId id = world.submit(std::move(request));
            world.run();
            const Outcome& outcome = world.outcomes.at(id);
            CHECK_EQ(outcome.text, text);
            CHECK(outcome.finish == (limit < 6 ? FinishReason::kLength : FinishReason::kEnd));
            CHECK(outcome.usage.generated_tokens <= limit);
        }
    }
}

TEST(a_text_that_only_repeats_itself_is_closed) {
    const auto text = [](const std::string& pattern, int count) {
        std::string result = "[";
        for (int i = 0; i < count; ++i)
            result += pattern;
        return result + "]";
    };
    // The script would go on for ever; the grammar could end after any number of patterns.
    std::vector<std::string> endings;
    for (int count = 1; count <= 150; ++count) {
        for (const char* pattern : {"a", "ab"})
            endings.push_back(text(pattern, count));
    }
    for (const char* pattern : {"a", "ab"}) {
        const std::string all = text(pattern, 150);
        auto request = guided(texts(endings), std::vector<Token>(all.begin(), all.end() - 1));
        request.limits.max_tokens = 400;
        World world(streams(4));
        const SequenceId id = world.submit(without_forcing(std::move(request)));
        world.run();
        const Outcome& outcome = world.outcomes.at(id);
        CHECK_EQ(outcome.text, text(pattern, 128 / static_cast<int>(std::string(pattern).size())));
        CHECK(outcome.finish == FinishReason::kEnd);
    }
}

TEST(a_text_that_goes_on_being_blank_is_closed_sooner) {
    const auto text = [](int blanks, const std::string& end) {
        return "[ab" + std::string(static_cast<std::size_t>(blanks), ' ') + end;
    };
    for (const int blanks : {48, 49}) {
        const std::string whole = text(blanks, "abcd]");
        auto request = guided(texts({text(48, "]"), whole}), {whole.begin(), whole.end() - 1});
        request.limits.max_tokens = 400;
        World world(streams(4));
        const SequenceId id = world.submit(without_forcing(std::move(request)));
        world.run();
        CHECK_EQ(world.outcomes.at(id).text, blanks == 48 ? whole : text(48, "]"));
        CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
    }
}

TEST(a_text_that_may_end_wherever_it_repeats_itself_is_left_alone) {
    std::vector<std::string> endings;
    for (int count = 1; count <= 200; ++count)
        endings.push_back(std::string(count, 'a'));
    auto request = guided(texts(endings), std::vector<Token>(200, 'a'));
    request.limits.max_tokens = 400;
    World world(streams(4));
    const SequenceId id = world.submit(without_forcing(std::move(request)));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string(200, 'a'));
}

TEST(searches_for_an_end_share_a_bounded_amount_of_work_in_each_step) {
    const auto grammar = std::make_shared<const FakeGrammar>(FakeGrammarOptions{
        .texts = {"[aaaaaaaaaaaaaaaaaaaa]", "[aaaa]", "[aaaaaaaaa]"}, .closing_looks = 500});
    World world(streams(8), {.parallel = 8, .step_token_budget = 64});
    const auto prompt = words(7, 30);
    const SequenceId free = world.submit(prompt, 400);
    std::vector<SequenceId> ids;
    for (const std::int32_t limit : {7, 11, 40, 7, 11, 40}) {
        auto request = guided(grammar, std::vector<Token>(30, 'a'));
        request.limits.max_tokens = limit;
        request.close_at_limit = true;
        ids.push_back(world.submit(std::move(request)));
    }
    int most = 0;
    int searching = 0;
    for (int before = 0; !world.outcomes[free].finished; before = grammar->looks()) {
        const std::size_t generated = world.outcomes[free].sampled.size();
        CHECK(world.step());
        most = std::max(most, grammar->looks() - before);
        if (grammar->looks() == before || generated == 0) continue;
        // Whoever does not search gets a token from every step.
        CHECK_EQ(world.outcomes[free].sampled.size(), generated + 1);
        searching += 1;
    }
    CHECK(most > 0 && most <= 32);
    CHECK(searching > 100);
    world.run();
    CHECK(world.outcomes.at(free).sampled == world.reference(prompt, 400));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const Outcome& outcome = world.outcomes.at(ids[i]);
        const std::vector<std::string> expected = {"[aaaa]", "[aaaaaaaaa]",
                                                   "[aaaaaaaaaaaaaaaaaaaa]"};
        CHECK_EQ(outcome.text, expected[i % 3]);
        CHECK(outcome.finish == FinishReason::kEnd);
    }
}

TEST(a_search_for_an_end_outlives_preemption_and_ends_with_its_sequence) {
    const auto grammar = std::make_shared<const FakeGrammar>(FakeGrammarOptions{
        .texts = {"[aaaaaaaaaaaaaaaaaaaa]", "[aaaa]", "[aaaaaaaaa]"}, .closing_looks = 100});
    const auto submit = [&](World& world, std::uint32_t seed) {
        auto request = guided(grammar, std::vector<Token>(30, 'a'));
        request.prompt = words(seed, 20);
        request.limits.max_tokens = 11;
        request.close_at_limit = true;
        return world.submit(std::move(request));
    };
    World world(unified(4, 64, 63, 16), {.parallel = 4, .step_token_budget = 16});
    const SequenceId searches = submit(world, 11);
    while (grammar->looks() == 0)
        CHECK(world.step());
    // Others want its cells: it gives them up in the middle of its search.
    const SequenceId older = world.submit(words(12, 20), 30);
    const SequenceId younger = submit(world, 13);
    world.scheduler.pause(younger);
    const SequenceId cancelled = submit(world, 14);
    for (int i = 0; i < 8; ++i)
        world.step();
    world.scheduler.cancel(cancelled, world.now);
    world.run();
    CHECK_EQ(world.outcomes.at(searches).text, std::string("[aaaaaaaaa]"));
    CHECK(world.outcomes.at(searches).finish == FinishReason::kEnd);
    CHECK(world.outcomes.at(older).finished);
    CHECK(world.outcomes.at(younger).held);
    CHECK_EQ(world.outcomes.at(younger).text, std::string("["));
    std::int32_t recomputed = 0;
    for (const auto& [id, outcome] : world.outcomes)
        recomputed += outcome.usage.recomputed_tokens;
    CHECK(recomputed > 0);
}

TEST(log_probabilities_are_of_the_token_that_closes) {
    std::vector<std::vector<float>> told;
    for (const int looks : {0, 100}) {
        const auto grammar = std::make_shared<const FakeGrammar>(
            FakeGrammarOptions{.texts = {"[aaaaaaaaa]", "[aa]"}, .closing_looks = looks});
        FakeBackend backend(streams(2));
        Scheduler scheduler({.parallel = 2, .step_token_budget = 64}, backend);
        auto request = guided(grammar, std::vector<Token>(30, 'a'));
        request.id = 1;
        request.limits.max_tokens = 5;
        request.close_at_limit = true;
        request.top_logprobs = 0;
        scheduler.submit(std::move(request));
        while (scheduler.step(0)) {
        }
        std::string text;
        told.emplace_back();
        for (const Event& event : scheduler.take_events().events) {
            text += event.text;
            for (const TokenLogprobs& each : event.logprobs)
                told.back().push_back(each.logprob);
        }
        CHECK_EQ(text, std::string("[aa]"));
    }
    CHECK_EQ(told[0].size(), std::size_t{4});
    CHECK(told[0] == told[1]);
}

TEST(a_text_that_may_end_anywhere_ends_at_its_limit) {
    World world(streams(4));
    auto request = guided(texts({"a", "aa", "aaa", "aaaa", "aaaaa"}), std::vector<Token>(30, 'a'));
    request.limits.max_tokens = 3;
    request.close_at_limit = true;
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, std::string("aaa"));
    CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
}

TEST(spelled_control_tokens_are_text_and_markers) {
    World world(streams(4));
    const std::string marker = world.backend.spelled_piece(kControl);
    SubmitRequest request{.prompt = words(1, 20),
                          .sampling = {.script = std::vector<Token>{kControl, 'a', kControl}},
                          .pause = {.call_open = marker,
                                    .call_close = "a" + marker,
                                    .hold_at_end = PauseTriggers::HoldAtEnd::kAfterCall}};
    request.spelled_tokens = {kControl};
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, marker + "a" + marker);
    CHECK_EQ(world.outcomes.at(id).ready, 1);
    CHECK(world.outcomes.at(id).held);
}

TEST(a_spelled_end_token_can_close_a_call) {
    World world(streams(4));
    SubmitRequest request{.prompt = words(1, 20),
                          .sampling = {.script = std::vector<Token>{'<', 'a', kTurn}},
                          .pause = {.call_open = "<",
                                    .call_close = world.backend.spelled_piece(kTurn),
                                    .hold_at_end = PauseTriggers::HoldAtEnd::kAfterCall}};
    request.spelled_tokens = {kTurn};
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK_EQ(world.outcomes.at(id).ready, 1);
    CHECK(world.outcomes.at(id).held);
}

TEST_MAIN()
