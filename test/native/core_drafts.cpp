// What a text proposes, and how much of it a step is worth.
#include <algorithm>
#include <random>

#include "check.h"
#include "core/draft_gate.h"
#include "core/draft_index.h"

using namespace fermata;

namespace {

std::vector<Token> tokens(const std::string& text) {
    return {text.begin(), text.end()};
}

Draft propose(const std::string& text, std::int32_t most = 8) {
    DraftIndex index;
    index.append(tokens(text));
    return index.propose(most);
}

std::string text_of(const Draft& draft) {
    return {draft.tokens.begin(), draft.tokens.end()};
}

CacheShape streams() {
    return {.slot_count = 8, .cells_per_sequence = 512, .max_rows = 512, .micro_batch_rows = 512};
}

// `proposed` tokens, each as likely.
DraftGate::Share share(SlotId slot, double chance, std::int32_t proposed = 15) {
    return {.slot = slot,
            .rows = 1,
            .samples = true,
            .chances = std::vector<double>(static_cast<std::size_t>(proposed), chance)};
}

// Steps of one sequence: `base` milliseconds and `more` for each further row.
void teach(DraftGate& gate, double base, double more, std::int64_t most = 16) {
    for (int i = 0; i < 20; ++i) {
        for (std::int64_t rows = 1; rows <= most; ++rows) {
            const Pass pass{.slots = 1, .rows = rows};
            gate.took(std::span(&pass, 1), base + more * static_cast<double>(rows - 1));
        }
    }
}

}  // namespace

TEST(the_longest_match_is_proposed_and_of_equals_the_latest) {
    CHECK_EQ(text_of(propose("abcX..abcY..abc", 3)), "Y..");
    CHECK_EQ(text_of(propose("-abcX...abcY..-abc", 2)), "X.");
    CHECK_EQ(propose("-abcX...abcY..-abc").match, 4);
    CHECK_EQ(propose("bcX..abc").match, 0);  // two tokens are too few
    CHECK(propose("").tokens.empty() && propose("abc").tokens.empty());
    CHECK_EQ(text_of(propose("....abababab", 5)), "ababa");  // goes on with itself
}

TEST(a_text_that_grows_and_shrinks_proposes_what_a_new_one_does) {
    std::mt19937 random(1);
    DraftIndex index;
    std::vector<Token> text;
    for (int i = 0; i < 20'000; ++i) {
        if (random() % 8 == 0 && !text.empty()) {
            text.resize(text.size() - 1 - random() % std::min<std::size_t>(text.size(), 3));
            index.shorten(static_cast<std::int32_t>(text.size()));
        }
        std::vector<Token> more;
        for (auto count = random() % 4; count > 0; --count)
            more.push_back(static_cast<Token>(random() % 3));
        text.insert(text.end(), more.begin(), more.end());
        index.append(more);
        if (text.size() > 400) {
            text.clear();
            index.shorten(0);
        }
        if (i % 16 != 0) continue;
        DraftIndex fresh;
        fresh.append(text);
        const Draft draft = index.propose(6);
        CHECK_EQ(draft.match, fresh.propose(6).match);
        CHECK(draft.tokens == fresh.propose(6).tokens);
        if (draft.match == 0) continue;
        // It did follow what the text ends with.
        std::vector<Token> whole(text.end() - draft.match, text.end());
        whole.push_back(draft.tokens.front());
        CHECK(std::search(text.begin(), text.end(), whole.begin(), whole.end()) != text.end());
    }
}

TEST(rows_that_cost_nothing_are_taken_and_dear_ones_are_not) {
    DraftGate cheap(streams()), dear(streams());
    teach(cheap, 10.0, 0.1);
    teach(dear, 10.0, 9.0);
    const std::vector sure{share(0, 0.95)};
    CHECK_EQ(cheap.choose(sure, 100).front(), 15);
    CHECK_EQ(cheap.choose(sure, 4).front(), 4);
    CHECK_EQ(dear.choose(std::vector{share(0, 0.5)}, 100).front(), 0);
    const std::int32_t some = cheap.choose(std::vector{share(0, 0.5)}, 100).front();
    CHECK(some > 1 && some < 8);
    CHECK_EQ(cheap.choose(std::vector{share(0, 0.01)}, 100).front(), 0);
}

TEST(what_was_never_measured_is_tried_once) {
    DraftGate gate(streams());
    teach(gate, 10.0, 0.0, 1);
    const std::vector sure{share(0, 0.9)};
    const std::int32_t tried = gate.choose(sure, 100).front();
    CHECK_EQ(tried, 15);
    const Pass wide{.slots = 1, .rows = 1 + tried};
    gate.took(std::span(&wide, 1), 500.0);
    CHECK_EQ(gate.choose(sure, 100).front(), 0);
}

TEST(a_second_pass_over_the_weights_for_one_of_eight_does_not_pay) {
    DraftGate gate(streams());
    teach(gate, 10.0, 0.1);
    const Pass all{.slots = 8, .rows = 8};
    gate.took(std::span(&all, 1), 14.0);
    std::vector<DraftGate::Share> eight;
    for (SlotId slot = 0; slot < 8; ++slot)
        eight.push_back(share(slot, 0.0, 0));
    eight[3] = share(3, 0.8);
    CHECK_EQ(std::ranges::max(gate.choose(eight, 100)), 0);
    // All eight together need no more passes.
    for (SlotId slot = 0; slot < 8; ++slot)
        eight[static_cast<std::size_t>(slot)] = share(slot, 0.8, 3);
    CHECK_EQ(std::ranges::min(gate.choose(eight, 100)), 3);
}

TEST(drafts_cost_no_more_than_they_may) {
    DraftGate gate(streams());
    teach(gate, 10.0, 2.0);
    DraftGate::Share sure = share(0, 0.95);
    const auto chosen_of = [&](double may_cost) {
        sure.may_cost = may_cost;
        return gate.choose(std::vector{sure}, 100).front();
    };
    CHECK_EQ(chosen_of(-0.5), 0);
    CHECK_EQ(chosen_of(0.1), 0);
    CHECK_EQ(chosen_of(0.5), 2);
    CHECK_EQ(chosen_of(1.0), 5);
    CHECK_EQ(chosen_of(100.0), 10);
    // One that may cost nothing has no rows, whatever the other may.
    DraftGate::Share poor = share(1, 0.95);
    poor.may_cost = 0.0;
    CHECK_EQ(gate.choose(std::vector{sure, poor}, 100).back(), 0);
}

TEST(an_account_earns_by_what_was_right_and_by_time) {
    DraftAccount account;
    CHECK_EQ(account.left(), 1.0);
    account.count(3.0, 5);
    CHECK(account.left() > 3.0 && account.left() < 3.1);
    account.count(50.0, 0);
    CHECK_EQ(account.left(), -1.0);
    for (int token = 0; token < 100; ++token)
        account.count(0.0, 0);
    CHECK(account.left() > 0.4 && account.left() < 0.6);
}

TEST(an_account_opens_again_where_proposals_are_right_for_long) {
    DraftAccount account;
    account.count(50.0, 0);
    for (int round = 0; round < 3; ++round) {
        for (int token = 0; token < 7; ++token)
            account.saw(true);
        account.saw(false);
    }
    CHECK_EQ(account.left(), -1.0);
    for (int token = 0; token < 8; ++token)
        account.saw(true);
    CHECK_EQ(account.left(), 1.0);
}

TEST(a_draft_model_is_asked_where_it_pays) {
    DraftGate gate(streams());
    teach(gate, 10.0, 0.5);
    gate.answered();
    const std::vector likely{share(0, 0.8)};
    const auto cheap = gate.ask(likely, 1.0), dear = gate.ask(likely, 9.0);
    CHECK(cheap.tokens > 2 && cheap.tokens < 10);
    // 0.8 and 0.64 more tokens for 3 ms more, and so on: at least a third of the time is saved.
    CHECK(cheap.saves > 10.0 / 3 && cheap.saves < 10.0);
    CHECK_EQ(dear.tokens, 0);
    CHECK_EQ(gate.ask(std::vector{share(0, 0.2)}, 1.0).tokens, 0);
    CHECK_EQ(gate.ask(std::vector{share(0, 0.8, 0)}, 1.0).tokens, 0);
    CHECK_EQ(gate.ask(std::vector{share(0, 0.8, 2)}, 1.0).tokens, 2);
    // What a step of two takes was never measured.
    CHECK_EQ(gate.ask(std::vector{share(0, 0.9), share(1, 0.9)}, 0.1).tokens, 0);
}

// Steps of one, in each of which a draft model is asked if it may be: `right` tokens of it come
// true for `cost` milliseconds. Returns in how many it was.
int ask_often(DraftGate& gate, int steps, double cost, std::int64_t right) {
    int asked = 0;
    const Pass pass{.slots = 1, .rows = 1};
    for (int step = 0; step < steps; ++step) {
        const bool asks = gate.ask(std::vector{share(0, 0.8)}, 1.0).tokens > 0;
        asked += asks ? 1 : 0;
        gate.took(std::span(&pass, 1), 10.0);
        if (asks) gate.asked(cost, right);
    }
    return asked;
}

TEST(a_machine_that_stood_still_says_nothing_about_a_draft_model) {
    DraftGate gate(streams());
    teach(gate, 10.0, 0.5);
    CHECK_EQ(ask_often(gate, 1, 60'000.0, 0), 1);
    // At most half a second is owed: that is 3 in 100 of 1,667 steps.
    ask_often(gate, 1'700, 5.0, 3);
    CHECK_EQ(ask_often(gate, 10, 5.0, 3), 10);
}

TEST(a_draft_model_costs_no_more_than_a_small_part_of_the_time_beyond_what_it_saves) {
    DraftGate gate(streams());
    teach(gate, 10.0, 0.5);
    // 20 milliseconds each, of half a second and 3 in 100 of what steps took and take.
    CHECK(ask_often(gate, 1'000, 20.0, 0) <= 25 + 7 + 15 + 1);
    CHECK(ask_often(gate, 1'000, 20.0, 0) <= 15 + 1);
    CHECK(ask_often(gate, 1'000, 20.0, 1) <= 30 + 1);
    // What it saves may be spent, but not all that it ever saved.
    CHECK(ask_often(gate, 1'000, 15.0, 3) >= 900);
    CHECK(ask_often(gate, 10, 200.0, 0) == 10);
    CHECK(ask_often(gate, 1'000, 200.0, 0) <= 25 + 1);
}

TEST(a_draft_model_that_does_not_pay_is_tried_again_now_and_then) {
    DraftGate gate(streams());
    const std::vector unlikely{share(0, 0.1)};
    std::int32_t asked = 0;
    double saves = 0.0;
    for (int step = 0; step < 2'500; ++step) {
        const Pass pass{.slots = 1, .rows = 1};
        gate.took(std::span(&pass, 1), 10.0);
        const auto asking = gate.ask(unlikely, 5.0);
        // It answers the third time: it had a text to read.
        asked += asking.tokens > 0 ? 1 : 0;
        if (asking.tokens > 0 && asked % 3 == 0) gate.answered();
        // At first texts are read for it.
        if (asked <= 3 && asking.tokens > 0) CHECK_EQ(asking.saves, 10.0);
        if (asked > 3) saves = std::max(saves, asking.saves);
    }
    CHECK_EQ(asked, 5 * 3);
    CHECK(saves > 0.0 && saves < 1.0);
}

TEST(a_source_is_followed_past_what_the_text_puts_in_its_place) {
    DraftIndex edit;
    edit.append(tokens("0123456789abcdefghij|0123456789abc"));
    Draft draft = edit.propose(4);
    CHECK_EQ(text_of(draft), "defg");
    edit.follow(draft);
    edit.append(tokens("X"));  // in place of d
    CHECK_EQ(edit.propose(4).match, 0);
    draft = edit.go_on(4);
    CHECK_EQ(text_of(draft), "efgh");
    CHECK_EQ(draft.misses, 1);
    edit.follow(draft);
    edit.append(tokens("ef"));
    CHECK_EQ(text_of(edit.go_on(2)), "gh");
    CHECK_EQ(edit.go_on(2).misses, 0);
    for (int i = 0; i < 4; ++i)
        edit.append(tokens("?"));
    CHECK_EQ(edit.go_on(1).misses, 4);
    edit.append(tokens("?"));
    CHECK(edit.go_on(1).tokens.empty());
}

TEST(the_source_of_a_short_match_is_followed_past_less) {
    DraftIndex edit;
    edit.append(tokens("abcdefghij|abc"));
    edit.follow(edit.propose(4));
    edit.append(tokens("X"));
    CHECK_EQ(edit.go_on(1).misses, 2);
    for (int i = 0; i < 3; ++i)
        edit.append(tokens("?"));
    CHECK(edit.go_on(1).tokens.empty());
}

TEST(a_text_that_shrinks_follows_nothing) {
    DraftIndex index;
    index.append(tokens("abcdefghij|abc"));
    index.follow(index.propose(4));
    index.append(tokens("Xy"));
    index.shorten(index.size() - 1);
    CHECK(index.go_on(4).tokens.empty());
}

TEST(a_draft_is_cut_where_it_becomes_unlikely) {
    DraftGate gate(streams());
    teach(gate, 10.0, 1.0);
    DraftGate::Share share{.slot = 0, .rows = 1, .samples = true, .chances = {0.9, 0.9, 0.1, 0.9}};
    CHECK_EQ(gate.choose(std::span(&share, 1), 100).front(), 2);
    share.chances[2] = 0.9;
    CHECK_EQ(gate.choose(std::span(&share, 1), 100).front(), 4);
}

namespace {

Draft next_row(const std::string& text, std::int32_t most = 16) {
    DraftIndex index;
    index.append(tokens(text));
    return index.next_row(index.propose(most), most);
}

// A letter for the first token that is taken of a value, for others of it and for the one behind
// it, a dot for the rest.
std::string values_of(const Draft& draft) {
    std::string text;
    for (const RowToken token : draft.row)
        text += ".fvb"[static_cast<std::size_t>(token)];
    return text;
}

const std::string kRows = "[{id:anna,at:7100},{id:bert,at:8250},{id:carl,at:9399}]\n";

}  // namespace

TEST(a_row_goes_on_with_the_values_of_the_next_one) {
    const Draft id = next_row(kRows + "add(anna) on 7100\nadd(");
    CHECK_EQ(text_of(id), "bert) on 8250\nad");
    CHECK_EQ(values_of(id), "fvvvb....fvvvb..");
    CHECK_EQ(text_of(next_row(kRows + "add(anna) on 7100\nadd(bert) on 8250\nadd(carl) on ", 5)),
             "9399\n");
    // From text that is between two values.
    CHECK_EQ(text_of(next_row(kRows + "add(anna) on 7100\nadd(bert) o", 6)), "n 8250");
}

TEST(a_value_that_was_begun_ends_as_it_does_in_the_row_before) {
    const Draft draft = next_row(kRows + "add(anna) on 7100\nadd(bert) on 8250\nadd(car", 8);
    CHECK_EQ(text_of(draft), "l) on 93");
    CHECK_EQ(values_of(draft), "fb....fv");
}

namespace {

// An answer that was said token by token.
DraftIndex said(const std::string& prompt, const std::string& answer) {
    DraftIndex index;
    index.append(tokens(prompt));
    for (const Token token : tokens(answer)) {
        index.append(std::span(&token, 1));
        index.follow(index.propose(8));
    }
    return index;
}

}  // namespace

TEST(near_the_source_one_token_tells_where_it_goes_on) {
    const auto drafts = said("name:\"abcdef\",path:\"xyz\"|", "abcdef, x").nearby(3);
    CHECK(std::ranges::any_of(
        drafts, [](const Draft& draft) { return text_of(draft) == "yz\"" && draft.match == 1; }));
    CHECK(said("abcdef|", "??").nearby(3).empty());
}

TEST(values_of_two_tokens_are_those_of_the_next_row) {
    const std::string rows = "10,Anna,Oslo\n27,Bert,Bonn\n38,Carl,Graz\n" + std::string(60, '.');
    const DraftIndex index = said(rows, "put(10,'Anna','Oslo');put(27,'Bert','");
    CHECK_EQ(text_of(index.next_row_by_origin(10)), "Bonn');put");
    CHECK(said(rows, "??").next_row_by_origin(10).tokens.empty());
}

TEST(a_text_without_rows_has_no_next_one) {
    CHECK(next_row("").tokens.empty());
    CHECK(next_row("abcdefghij|abc").tokens.empty());
    CHECK(next_row("....abababab").tokens.empty());
    // Behind the last row there is none.
    CHECK(next_row("[{id:anna},{id:bert}]\nadd(anna)\nadd(bert)\nadd(").tokens.empty());
}

TEST(rows_of_any_text_stay_in_it) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        DraftIndex index;
        const unsigned letters = 2 + random() % 5;
        for (int i = 0; i < 200; ++i) {
            const Token token = static_cast<Token>(random() % letters);
            index.append(std::span(&token, 1));
            if (random() % 50 == 0) index.shorten(index.size() / 2);
            const auto most = static_cast<std::int32_t>(random() % 20);
            const auto drafts = index.proposals(most);
            for (const Draft& draft : drafts) {
                CHECK(static_cast<std::int32_t>(draft.tokens.size()) <= most);
                CHECK(draft.row.empty() || draft.tokens.size() == draft.row.size());
                CHECK(std::ranges::all_of(draft.tokens, [&](Token drafted) {
                    return drafted >= 0 && drafted < static_cast<Token>(letters);
                }));
            }
            index.follow(drafts[random() % drafts.size()]);
        }
    }
}

TEST(a_record_follows_what_happens) {
    DraftRecord record;
    const Draft five{.match = 5};
    CHECK_EQ(record.chance(five, 0, 0.5), 0.5);
    for (int i = 0; i < 40; ++i)
        record.count(five, 0, true);
    CHECK(record.chance(five, 0, 0.5) < 0.1);
    CHECK_EQ(record.chance(Draft{.match = 30}, 0, 0.5), 0.5);  // another length of match
    CHECK_EQ(record.chance(Draft{.misses = 1}, 0, 0.5), 0.5);
    CHECK_EQ(record.chance(Draft{.by_model = true}, 0, 0.5), 0.5);
    for (int i = 0; i < 400; ++i)
        record.count(five, 1, false);
    CHECK(record.chance(five, 0, 0.5) > 0.9);
    // A match grows with each token that is right: the tenth behind five counts as one of 15.
    CHECK_EQ(record.chance(five, 10, 0.5), 0.5);
    record.count(five, 11, false);
    CHECK(record.chance(five, 10, 0.5) > 0.5);
    const Draft forced{.by_model = true, .forced_from = 1};
    for (int i = 0; i < 40; ++i)
        record.count(forced, 8, false);
    CHECK(record.chance(forced, 5, 0.5) > 0.9);
    for (int i = 0; i < 200; ++i)
        record.count(forced, 0, true);
    // What the grammar forces behind a draft model's token says nothing about that model.
    CHECK(record.chance(forced, 0, 0.5) < 0.1 && record.chance(forced, 1, 0.5) > 0.9);
    const Draft row{.match = 5, .row = {RowToken::kText, RowToken::kFirstOfValue}};
    record.count(row, 1, true);
    CHECK(record.chance(row, 0, 0.5) > 0.5 && record.chance(row, 1, 0.5) < 0.5);
}

TEST_MAIN()
