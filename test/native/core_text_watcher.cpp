#include "core/text_watcher.h"

#include <algorithm>
#include <random>

#include "check.h"

using namespace fermata;
using Signal = TextWatcher::Signal;

namespace {

PauseTriggers markers(bool hold_at_text = true) {
    return {
        .call_open = "<call>", .call_close = "</call>", .hold_at_text_after_call = hold_at_text};
}

TextWatcher stops(std::vector<std::string> stop) {
    return TextWatcher(std::move(stop), {});
}
TextWatcher calls(bool hold_at_text = true) {
    return TextWatcher({}, markers(hold_at_text));
}

// Feeds the pieces until one gives a signal that ends the text; returns the last signal.
Signal feed(TextWatcher& watcher, const std::vector<std::string>& pieces) {
    Signal signal = Signal::kNone;
    for (const std::string& piece : pieces) {
        signal = watcher.feed(piece);
        if (signal == Signal::kStop || signal == Signal::kTextAfterCall) break;
    }
    return signal;
}

std::string random_text(std::mt19937& random, std::string_view alphabet, std::size_t most) {
    std::string text;
    for (std::size_t count = random() % (most + 1); count > 0; --count)
        text += alphabet[random() % alphabet.size()];
    return text;
}

std::vector<std::string> cut(std::mt19937& random, const std::string& text) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = random() % 5;
        pieces.push_back(text.substr(at, length));
        at += length;
    }
    return pieces;
}

}  // namespace

TEST(without_stop_strings_and_markers_all_text_is_released) {
    TextWatcher watcher = stops({});
    CHECK(watcher.feed("hello") == Signal::kNone);
    CHECK_EQ(watcher.take_released(), "hello");
    CHECK_EQ(watcher.take_rest(), "");
}

TEST(a_stop_string_spread_over_pieces_is_cut) {
    TextWatcher watcher = stops({"STOP"});
    CHECK(watcher.feed("oneS") == Signal::kNone);
    CHECK_EQ(watcher.take_released(), "one");
    CHECK(watcher.feed("T") == Signal::kNone);
    CHECK(watcher.feed("") == Signal::kNone);
    CHECK_EQ(watcher.take_released(), "");
    CHECK(watcher.feed("OP and more") == Signal::kStop);
    CHECK_EQ(watcher.take_released(), "");
    CHECK_EQ(watcher.take_rest(), "");
    CHECK_EQ(watcher.stop_hit(), "STOP");
}

TEST(a_start_that_does_not_become_a_stop_string_is_released) {
    TextWatcher watcher = stops({"STOP"});
    feed(watcher, {"S", "T", "O"});
    CHECK_EQ(watcher.take_released(), "");
    CHECK(watcher.feed("R") == Signal::kNone);
    CHECK_EQ(watcher.take_released(), "STOR");
}

TEST(a_stop_string_may_overlap_its_own_false_start) {
    for (const std::vector<std::string>& pieces :
         {std::vector<std::string>{"aaab"}, {"a", "a", "a", "b"}, {"aa", "ab"}}) {
        TextWatcher watcher = stops({"aab"});
        CHECK(feed(watcher, pieces) == Signal::kStop);
        CHECK_EQ(watcher.take_rest(), "a");
    }
}

TEST(of_several_stop_strings_the_first_to_complete_wins_then_the_longest) {
    TextWatcher inner = stops({"abcd", "bc"});
    CHECK(inner.feed("xabcd") == Signal::kStop);
    CHECK_EQ(inner.stop_hit(), "bc");
    CHECK_EQ(inner.take_rest(), "xa");
    TextWatcher longest = stops({"bc", "abc"});
    CHECK(longest.feed("xabc") == Signal::kStop);
    CHECK_EQ(longest.stop_hit(), "abc");
    CHECK_EQ(longest.take_rest(), "x");
}

TEST(what_is_held_back_comes_out_at_the_end) {
    TextWatcher watcher = stops({"\n\nUser:"});
    watcher.feed("bye\n\nUs");
    CHECK_EQ(watcher.take_released(), "bye");
    CHECK_EQ(watcher.take_rest(), "\n\nUs");
    CHECK(watcher.feed("er:") == Signal::kNone);
    CHECK_EQ(watcher.take_released(), "er:");
}

TEST(a_closed_call_is_signalled_and_counted) {
    TextWatcher watcher = calls();
    CHECK(feed(watcher, {"let me see <ca", "ll>", "{}</", "call"}) == Signal::kNone);
    CHECK_EQ(watcher.calls_closed(), 0);
    CHECK(watcher.feed(">") == Signal::kCallClosed);
    CHECK_EQ(watcher.calls_closed(), 1);
    CHECK(feed(watcher, {"\n", "<call>", "{}"}) == Signal::kNone);
    CHECK(watcher.feed("</call>") == Signal::kCallClosed);
    CHECK_EQ(watcher.calls_closed(), 2);
    CHECK_EQ(watcher.take_released(), "let me see <call>{}</call>\n<call>{}</call>");
}

TEST(the_end_of_one_call_is_not_the_start_of_the_next_end) {
    TextWatcher watcher({},
                        {.call_open = "(", .call_close = "##", .hold_at_text_after_call = true});
    CHECK(watcher.feed("(1##") == Signal::kCallClosed);
    CHECK(watcher.feed("(#") == Signal::kNone);
    CHECK(watcher.feed("#") == Signal::kCallClosed);
}

TEST(two_calls_may_close_within_one_piece) {
    TextWatcher watcher = calls();
    CHECK(watcher.feed("<call>1</call> <call>2</call>") == Signal::kCallClosed);
    CHECK_EQ(watcher.calls_closed(), 2);
}

TEST(text_after_a_call_is_refused_and_leaves_no_trace) {
    TextWatcher watcher = calls();
    feed(watcher, {"<call>{}</call>", "\n "});
    CHECK_EQ(watcher.take_released(), "<call>{}</call>\n ");
    for (int again = 0; again < 2; ++again)
        CHECK(watcher.feed(" So") == Signal::kTextAfterCall);
    CHECK_EQ(watcher.take_rest(), "");
    CHECK(feed(watcher, {"<call>", "{}", "</call>"}) == Signal::kCallClosed);
    CHECK_EQ(watcher.calls_closed(), 2);
}

TEST(the_start_of_a_marker_is_not_yet_text) {
    TextWatcher marker = calls();
    CHECK(feed(marker, {"<call></call>", "<", "c", "all", ">"}) == Signal::kNone);
    CHECK(feed(marker, {"x</call>"}) == Signal::kCallClosed);

    TextWatcher text = calls();
    CHECK(feed(text, {"<call></call>", "<", "b>"}) == Signal::kTextAfterCall);
    CHECK_EQ(text.take_rest(), "<call></call><");
    TextWatcher blank_within = calls();
    CHECK(feed(blank_within, {"<call></call>", "<", " "}) == Signal::kTextAfterCall);
}

TEST(text_in_the_piece_that_closes_the_call_is_kept) {
    TextWatcher watcher = calls();
    CHECK(feed(watcher, {"<call></call", "> So"}) == Signal::kCallClosed);
    CHECK(watcher.feed("") == Signal::kNone);
    CHECK(watcher.feed("\n") == Signal::kTextAfterCall);
    CHECK_EQ(watcher.take_rest(), "<call></call> So");
}

TEST(text_after_a_call_is_allowed_unless_told_otherwise) {
    TextWatcher watcher = calls(false);
    CHECK(feed(watcher, {"<call></call>", " So <", "<call>", "</call>"}) == Signal::kCallClosed);
    CHECK_EQ(watcher.calls_closed(), 2);
}

TEST(a_marker_may_begin_with_blanks) {
    TextWatcher watcher(
        {}, {.call_open = "\n<call>", .call_close = "</call>", .hold_at_text_after_call = true});
    CHECK(feed(watcher, {"\n<call>", "</call>", "\n", "\n", "\n<call>", "</call>"}) ==
          Signal::kCallClosed);
    CHECK_EQ(watcher.calls_closed(), 2);
}

TEST(a_call_without_a_close_marker_never_closes) {
    TextWatcher watcher({},
                        {.call_open = "[TOOL]", .call_close = "", .hold_at_text_after_call = true});
    CHECK(feed(watcher, {"[TOOL]", "{}", " text"}) == Signal::kNone);
    CHECK_EQ(watcher.calls_closed(), 0);
}

TEST(no_stop_string_ends_a_call) {
    for (const std::vector<std::string>& pieces :
         {std::vector<std::string>{"<call>{a}</call>"},
          {"<", "c", "a", "l", "l", ">", "{", "a}<", "/call", ">"},
          {"<call>{", "a", "}</call>"}}) {
        for (const std::string stop :
             {"<", "<c", "call", "ll>", ">", "<call>", "a", "}<", "all>"}) {
            TextWatcher watcher({stop}, markers());
            CHECK(feed(watcher, pieces) == Signal::kCallClosed);
            CHECK_EQ(watcher.take_released(), "<call>{a}</call>");
            CHECK_EQ(watcher.stop_hit(), "");
        }
    }
    TextWatcher blanks({"\n"}, markers());
    CHECK(feed(blanks, {"<call></call>", "\n", "<call></call>"}) == Signal::kCallClosed);
    CHECK_EQ(blanks.calls_closed(), 2);
    TextWatcher guided({"\n"}, markers(false));
    CHECK(feed(guided, {"<call></call>", "\n<call>", "</call>"}) == Signal::kCallClosed);
}

TEST(a_stop_string_that_no_marker_follows_counts) {
    TextWatcher less({"<"}, markers());
    CHECK(less.feed("a <c") == Signal::kNone);
    CHECK_EQ(less.take_released(), "a ");
    CHECK(less.feed("alm") == Signal::kStop);
    CHECK_EQ(less.stop_hit(), "<");
    CHECK_EQ(less.take_released(), "");

    TextWatcher kept({"<"}, markers(), true);
    CHECK(feed(kept, {"a <c", "b"}) == Signal::kStop);
    CHECK_EQ(kept.take_released(), "a <");

    TextWatcher before({"x<c"}, markers());
    CHECK(before.feed("x<call>") == Signal::kStop);
    CHECK_EQ(before.take_rest(), "");

    // "<<call>": the first "<" is no part of the marker.
    TextWatcher twice({"<"}, markers());
    CHECK(twice.feed("<<") == Signal::kStop);

    TextWatcher at_end({"<"}, markers());
    CHECK(at_end.feed("a <c") == Signal::kNone);
    CHECK_EQ(at_end.take_rest(), "a ");
    CHECK_EQ(at_end.stop_hit(), "");
}

TEST(after_a_call_stop_strings_count_where_text_has_begun) {
    TextWatcher late({"xt"}, markers());
    CHECK(feed(late, {"<call></call>", "text"}) == Signal::kTextAfterCall);
    CHECK_EQ(late.stop_hit(), "");
    TextWatcher same({"xt"}, markers());
    CHECK(same.feed("<call></call>\ntext") == Signal::kStop);
    CHECK_EQ(same.calls_closed(), 1);
    CHECK_EQ(same.take_rest(), "<call></call>\nte");
    TextWatcher free({"xt"}, markers(false));
    CHECK(feed(free, {"<call></call>", "\nte", "xt <call>"}) == Signal::kStop);
    CHECK_EQ(free.take_rest(), "<call></call>\nte");
}

TEST(a_refused_piece_leaves_the_matchers_as_they_were) {
    TextWatcher held({"<z", "xt"}, markers());
    feed(held, {"<call></call>", "<"});
    CHECK_EQ(held.take_released(), "<call></call><");
    CHECK(held.feed(" text") == Signal::kTextAfterCall);
    CHECK_EQ(held.take_rest(), "");

    TextWatcher text({"ab"}, markers(false));
    feed(text, {"<call></call>", "a"});
    CHECK_EQ(text.take_released(), "<call></call>");
    CHECK(text.feed("b") == Signal::kStop);

    TextWatcher marker = calls();
    feed(marker, {"<call></call>", "<c"});
    CHECK(marker.feed("ax") == Signal::kTextAfterCall);
    CHECK(feed(marker, {"all>", "</call>"}) == Signal::kCallClosed);
}

TEST(a_pattern_may_overlap_itself) {
    ByteMatcher matcher("aa");
    CHECK(!matcher.feed('a') && matcher.feed('a') && matcher.feed('a') && !matcher.feed('b'));
    CHECK_EQ(matcher.matched(), std::size_t{0});
    CHECK(!ByteMatcher("").feed('a'));
}

TEST(a_new_round_starts_afresh) {
    TextWatcher watcher({"STOP"}, markers());
    feed(watcher, {"<call></call>", " <ca"});
    watcher.take_released();
    watcher.begin_round();
    CHECK_EQ(watcher.calls_closed(), 0);
    CHECK(feed(watcher, {"ll> text S"}) == Signal::kNone);
    CHECK_EQ(watcher.take_released(), "ll> text ");
    watcher.begin_round();
    CHECK(watcher.feed("TOP") == Signal::kNone);
    CHECK_EQ(watcher.take_rest(), "TOP");
}

// The first stop string of the whole text by plain search; held back is the longest suffix of what
// came so far that begins a stop string.
TEST(random_texts_stop_where_a_search_of_the_whole_text_says) {
    std::mt19937 random(11);
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::string> stop;
        for (auto count = random() % 4; count > 0; --count)
            stop.push_back("a" + random_text(random, "ab", 9));
        std::string text = random_text(random, "aab", 10);
        for (auto count = random() % 5; count > 0 && !stop.empty(); --count) {  // false starts
            const std::string& one = stop[random() % stop.size()];
            text += one.substr(0, random() % (one.size() + 1));
        }

        std::size_t cut_at = text.size(), end = std::string::npos;
        for (const std::string& one : stop) {
            const std::size_t at = text.find(one);
            if (at == std::string::npos) continue;
            if (at + one.size() > end || (at + one.size() == end && at > cut_at)) continue;
            end = at + one.size();
            cut_at = at;
        }

        TextWatcher watcher = stops(stop);
        std::string fed, released;
        Signal signal = Signal::kNone;
        for (const std::string& piece : cut(random, text)) {
            fed += piece;
            signal = watcher.feed(piece);
            released += watcher.take_released();
            if (signal == Signal::kStop) break;
            std::size_t open = 0;
            for (const std::string& one : stop)
                for (std::size_t length = 1; length < one.size(); ++length)
                    if (fed.ends_with(one.substr(0, length))) open = std::max(open, length);
            CHECK_EQ(released, fed.substr(0, fed.size() - open));
        }
        CHECK_EQ(signal == Signal::kStop, end != std::string::npos);
        CHECK_EQ(released + watcher.take_rest(), text.substr(0, cut_at));
    }
}

// Calls by plain search; the byte that makes text after a call certain by looking back from it.
TEST(random_calls_are_found_where_a_search_of_the_whole_text_says) {
    std::mt19937 random(12);
    const std::string open = "<<(", close = "<)";
    int refused = 0;
    for (int round = 0; round < 20000; ++round) {
        const bool hold = round % 2 == 0;
        std::string text;
        for (auto count = random() % 5; count > 0; --count)
            text += random_text(random, "< (", 3) + open + random_text(random, "<x", 3) + close;

        int closed = 0;
        std::size_t certain = std::string::npos;
        for (std::size_t at = 0; certain == std::string::npos;) {
            const std::size_t opened = text.find(open, at);
            if (hold && closed > 0) {
                std::size_t blank = at;
                while (blank < text.size() && text[blank] == ' ')
                    ++blank;
                std::size_t same = 0;
                while (blank + same < text.size() && same < open.size() &&
                       text[blank + same] == open[same])
                    ++same;
                if (same < open.size() && blank + same < text.size()) certain = blank + same;
            }
            if (opened == std::string::npos || certain != std::string::npos) break;
            const std::size_t ended = text.find(close, opened + open.size());
            if (ended == std::string::npos) break;
            ++closed;
            at = ended + close.size();
        }

        TextWatcher watcher(
            {}, {.call_open = open, .call_close = close, .hold_at_text_after_call = hold});
        std::string fed;
        Signal signal = Signal::kNone;
        for (const std::string& piece : cut(random, text)) {
            signal = watcher.feed(piece);
            const std::size_t end = fed.size() + piece.size();
            if (signal == Signal::kTextAfterCall) {
                CHECK(certain < end);
                ++refused;
                break;
            }
            // A piece with text after a call passes only if it also closed the call.
            const bool closes = signal == Signal::kCallClosed && certain >= fed.size();
            CHECK(piece.empty() || certain >= end || closes);
            fed += piece;
        }
        CHECK_EQ(watcher.take_rest(), fed);
        CHECK_EQ(watcher.calls_closed(), closed);
    }
    CHECK(refused > 1000);
}

TEST(where_pieces_end_does_not_matter) {
    std::mt19937 random(13);
    int stopped = 0;
    for (int round = 0; round < 20000; ++round) {
        const std::vector<std::string> stop = {random_text(random, "<(x", 2) + "<",
                                               "x" + random_text(random, "<( )", 2)};
        std::string text;
        for (auto count = random() % 4; count > 0; --count)
            text += random_text(random, "< (x", 4) + "<<(" + random_text(random, "<x", 3) + "<)";
        text += random_text(random, "< (x", 4);
        const auto shown = [&](const std::vector<std::string>& pieces) {
            TextWatcher watcher(stop, {.call_open = "<<(", .call_close = "<)"});
            std::string released;
            for (const std::string& piece : pieces) {
                const Signal signal = watcher.feed(piece);
                released += watcher.take_released();
                if (signal == Signal::kStop) break;
            }
            if (!watcher.stop_hit().empty()) ++stopped;
            return released + watcher.take_rest() + "|" + watcher.stop_hit();
        };
        std::vector<std::string> bytes;
        for (const char byte : text)
            bytes.emplace_back(1, byte);
        CHECK_EQ(shown(cut(random, text)), shown(bytes));
    }
    CHECK(stopped > 1000);
}

TEST_MAIN()
