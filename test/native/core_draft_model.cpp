// What a draft model reads, proposes and keeps in its cache.
#include <array>

#include "check.h"
#include "core/draft_model.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

// A draft model over the fake backend, whose clock goes on by `pace` whenever it is read.
class Drafting {
   public:
    explicit Drafting(CacheShape shape = streams(4, 400, DraftModel::kMostRead),
                      std::int32_t vocabulary_size = kVocabulary) {
        auto owned = std::make_unique<FakeBackend>(shape);
        backend = owned.get();
        model = std::make_unique<DraftModel>(std::move(owned), vocabulary_size,
                                             [this] { return now += pace; });
    }

    std::vector<Token> propose(SlotId slot, const std::vector<Token>& text, std::int32_t most,
                               Salt salt = 0) {
        return propose(DraftModel::Reader{slot, text, most, salt});
    }
    std::vector<Token> propose(const DraftModel::Reader& reader) {
        const auto before = model->rows();
        const auto answer = model->propose(std::span(&reader, 1)).front();
        has_read = answer.has_read;
        rows = model->rows() - before;
        return answer.tokens;
    }
    // What its backend goes on with, one token after the other.
    std::vector<Token> reference(std::vector<Token> text, std::size_t count) const {
        const auto size = text.size();
        while (text.size() < size + count)
            text.push_back(backend->next_token(text));
        return {text.begin() + static_cast<std::ptrdiff_t>(size), text.end()};
    }

    double now = 0.0, pace = 1.0;
    bool has_read = false;
    std::int64_t rows = 0;  // of the last call
    FakeBackend* backend = nullptr;
    std::unique_ptr<DraftModel> model;
};

// Layers of the engine's model: of a text they have what the engine computed, and each token is
// followed by the next number.
class FakeHead final : public Decoder {
   public:
    CacheShape shape() const override { return streams(2, 400, DraftModel::kMostRead); }
    Readable readable(SlotId) const override { return known; }
    bool keeps_proposed() const override { return false; }
    DecodeStatus decode(std::span<const BatchRow> rows) override {
        last_.assign(rows.begin(), rows.end());
        for (const BatchRow& row : rows) {
            auto& slot = positions.at(static_cast<std::size_t>(row.slot));
            const bool follows = row.position == (slot.empty() ? 0 : slot.back() + 1);
            CHECK(follows || row.position == known.first);
            slot.push_back(row.position);
        }
        return DecodeStatus::kOk;
    }
    std::span<const float> logits(std::size_t row) override {
        logits_.assign(kVocabulary, 0.0f);
        logits_.at(static_cast<std::size_t>(last_.at(row).token) + 1) = 100.0f;
        return logits_;
    }
    bool copy_prefix(SlotId from, SlotId to, std::int32_t length) override {
        positions.at(static_cast<std::size_t>(to)) = positions.at(static_cast<std::size_t>(from));
        return truncate(to, length);
    }
    bool truncate(SlotId slot, std::int32_t length) override {
        std::erase_if(positions.at(static_cast<std::size_t>(slot)),
                      [length](std::int32_t position) { return position >= length; });
        return true;
    }
    bool is_end(Token) const override { return false; }

    std::array<std::vector<std::int32_t>, 2> positions = {};
    Readable known = {};

   private:
    std::vector<BatchRow> last_;
    std::vector<float> logits_;
};

// Positions from `first` up to `end`.
std::vector<std::int32_t> range(std::int32_t first, std::int32_t end) {
    std::vector<std::int32_t> positions;
    for (; first < end; ++first)
        positions.push_back(first);
    return positions;
}

}  // namespace

TEST(drafts_are_what_the_model_says) {
    Drafting drafting;
    const auto one = words(1, 20), other = words(2, 33);
    CHECK(drafting.propose(0, one, 5) == drafting.reference(one, 5));
    const std::vector<DraftModel::Reader> both{{1, other, 3}, {3, one, 6}};
    const auto answers = drafting.model->propose(both);
    CHECK(answers[0].tokens == drafting.reference(other, 3));
    CHECK(answers[1].tokens == drafting.reference(one, 6));
}

TEST(only_what_is_new_is_read) {
    Drafting drafting;
    auto text = words(1, 50);
    const auto draft = drafting.propose(0, text, 4);
    // The last of its tokens was never computed.
    CHECK_EQ(drafting.model->rows(), 50 + 3);
    text = joined(text, draft);
    text.push_back('x');
    CHECK(drafting.propose(0, text, 1) == drafting.reference(text, 1));
    CHECK_EQ(drafting.model->rows(), 53 + 2);
    // It came otherwise: the rejected rows leave.
    text[52] = '!';
    CHECK(drafting.propose(0, text, 1) == drafting.reference(text, 1));
    CHECK_EQ(drafting.model->rows(), 55 + 3);
    // Nothing is new but the logits of its last token are gone.
    CHECK(drafting.propose(0, text, 1) == drafting.reference(text, 1));
    CHECK_EQ(drafting.model->rows(), 58 + 1);
}

TEST(a_long_text_is_read_in_pieces_and_keeps_no_short_one_waiting) {
    Drafting drafting;
    const auto text = words(3, 300), later = words(4, 10);
    const std::vector<DraftModel::Reader> both{{0, text, 2}, {1, later, 2}};
    auto answers = drafting.model->propose(both);
    CHECK(!answers[0].has_read && answers[0].tokens.empty());
    CHECK(answers[1].tokens == drafting.reference(later, 2));
    CHECK_EQ(drafting.model->rows(), DraftModel::kMostRead + 1);
    answers = drafting.model->propose(both);
    CHECK(answers[0].has_read && answers[0].tokens == drafting.reference(text, 2));
    CHECK(drafting.propose(2, words(5, 401), 2).empty());
    CHECK(!drafting.has_read);
}

TEST(a_slow_one_reads_less_at_once) {
    Drafting drafting;
    drafting.pace = 60.0;
    drafting.propose(0, words(1, 100), 1);
    CHECK_EQ(drafting.model->rows(), 100);
    // 60 milliseconds for 100 rows: 166 in 100.
    CHECK(drafting.propose(1, words(2, 300), 1).empty());
    CHECK_EQ(drafting.model->rows(), 100 + 166);
    drafting.pace = 10'000.0;
    drafting.propose(1, words(2, 300), 1);
    const auto before = drafting.model->rows();
    drafting.propose(2, words(3, 300), 1);
    CHECK_EQ(drafting.model->rows(), before + DraftModel::kLeastRead);
}

TEST(a_beginning_is_copied_from_the_slot_that_has_it) {
    for (const bool pooled : {false, true}) {
        const std::int32_t rows = DraftModel::kMostRead;
        Drafting drafting(pooled ? unified(4, 800, 400, rows) : streams(4, 400, rows));
        const auto prefix = words(1, 200);
        drafting.propose(2, joined(prefix, words(2, 20)), 1);
        const auto text = joined(prefix, words(3, 20));
        CHECK(drafting.propose(1, text, 3) == drafting.reference(text, 3));
        CHECK_EQ(drafting.model->rows(), 220 + 20 + 2);
    }
}

TEST(nothing_is_copied_from_a_text_of_another_salt) {
    Drafting drafting;
    const auto text = words(1, 200);
    drafting.propose(0, text, 1, 7);
    drafting.propose(1, text, 1, 7);
    CHECK_EQ(drafting.rows, 1);
    CHECK(drafting.propose(0, text, 1, 8) == drafting.reference(text, 1));
    CHECK_EQ(drafting.rows, 200);
    drafting.propose(2, text, 1, 9);
    CHECK_EQ(drafting.rows, 200);
}

TEST(a_token_that_it_does_not_know_keeps_one_text_from_it_and_no_other) {
    Drafting drafting;
    const auto known = words(1, 40);
    auto unknown = words(2, 40);
    unknown[7] = kVocabulary;
    const std::vector<DraftModel::Reader> both{{0, unknown, 2}, {1, known, 2}};
    const auto answers = drafting.model->propose(both);
    CHECK(!answers[0].has_read);
    CHECK(answers[1].tokens == drafting.reference(known, 2));
}

TEST(a_full_pool_loses_the_texts_that_were_read_longest_ago) {
    Drafting drafting(unified(4, 120, 100, DraftModel::kMostRead));
    const auto rows_of = [&](SlotId slot, std::uint32_t seed) {
        const auto text = words(seed, 50);
        CHECK(drafting.propose(slot, text, 1) == drafting.reference(text, 1));
        return drafting.rows;
    };
    CHECK_EQ(rows_of(0, 1), 50);
    CHECK_EQ(rows_of(1, 2), 50);
    CHECK_EQ(rows_of(0, 1), 1);
    CHECK_EQ(rows_of(2, 3), 50);
    CHECK_EQ(rows_of(0, 1), 1);
    CHECK_EQ(rows_of(1, 2), 50);
    CHECK_EQ(drafting.backend->cells_in_use(), 100);
}

TEST(texts_that_do_not_fit_into_the_pool_together_have_no_draft) {
    Drafting drafting(unified(4, 120, 100, DraftModel::kMostRead));
    const auto one = words(1, 80), other = words(2, 80);
    const std::vector<DraftModel::Reader> both{{0, one, 1}, {1, other, 1}};
    for (const auto& answer : drafting.model->propose(both))
        CHECK(answer.tokens.empty());
    CHECK_EQ(drafting.backend->cells_in_use(), 0);
    CHECK(drafting.propose(1, other, 1) == drafting.reference(other, 1));
}

TEST(a_decode_that_fails_costs_the_draft_and_no_more) {
    Drafting drafting;
    const auto text = words(1, 20);
    drafting.backend->set_status(0, DecodeStatus::kFailed);
    drafting.backend->set_status(2, DecodeStatus::kFailed);
    drafting.backend->set_status(6, DecodeStatus::kFailed);
    CHECK(drafting.propose(0, text, 3).empty());
    CHECK(!drafting.has_read);
    CHECK(drafting.propose(0, text, 3) == drafting.reference(text, 1));
    CHECK(drafting.propose(0, text, 3) == drafting.reference(text, 3));
    // Another text fails: this one stays.
    CHECK(drafting.propose(1, words(2, 50), 1).empty());
    drafting.propose(0, text, 1);
    CHECK_EQ(drafting.rows, 1);
    drafting.backend->break_logits(true);
    CHECK(drafting.propose(0, text, 3).empty());
    CHECK(drafting.has_read);
}

TEST(an_end_and_what_the_other_vocabulary_has_not_are_no_drafts) {
    Drafting ending, small(streams(4, 400, DraftModel::kMostRead), 'b');
    ending.backend->set_end_period(1);
    CHECK(ending.propose(0, words(1, 9), 4).empty());
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        for (const Token token : small.propose(0, words(seed, 9), 4))
            CHECK(token < 'b');
    }
}

TEST(times_are_measured_before_there_is_a_text) {
    Drafting drafting;
    CHECK(!drafting.model->is_measured());
    drafting.model->measure();
    CHECK(drafting.model->is_measured());
    // The clock goes on once in each.
    CHECK_EQ(drafting.model->milliseconds_for(1), 1.0);
    CHECK(drafting.model->take_spent() > 1.0);
    CHECK_EQ(drafting.model->take_spent(), 0.0);
    CHECK_EQ(drafting.model->rows(), 0);
    CHECK_EQ(drafting.backend->cells_in_use(), 0);
    // A millisecond for 32 rows.
    const auto text = words(1, 100);
    CHECK(drafting.propose({.slot = 0, .tokens = text, .most = 2, .worth = 3.1}).empty());
    CHECK(!drafting.has_read);
    CHECK_EQ(drafting.rows, 0);
    CHECK_EQ(drafting.propose({.slot = 0, .tokens = text, .most = 2, .worth = 3.2}).size(), 2u);
}

TEST(times_are_learned) {
    Drafting drafting;
    drafting.propose(0, words(1, 100), 3);
    CHECK_EQ(drafting.model->milliseconds_for(1), 1.0);
    // Of another number: as of the nearest.
    CHECK_EQ(drafting.model->milliseconds_for(2), 1.0);
    // The clock is read at the beginning, behind each token, and at the end.
    CHECK_EQ(drafting.model->take_spent(), 4.0);
    // A millisecond for 100 rows.
    const auto text = words(2, 100);
    CHECK(drafting.propose({.slot = 1, .tokens = text, .most = 1, .worth = 0.99}).empty());
    CHECK_EQ(drafting.propose({.slot = 1, .tokens = text, .most = 1, .worth = 1.01}).size(), 1u);
}

TEST(rows_that_cannot_be_computed_are_left_out) {
    auto owned = std::make_unique<FakeHead>();
    FakeHead& head = *owned;
    DraftModel model(std::move(owned), kVocabulary, [] { return 0.0; });
    auto text = std::vector<Token>(100, 'c');
    const auto propose = [&](SlotId slot, std::int32_t most) {
        const DraftModel::Reader reader{slot, text, most};
        return model.propose(std::span(&reader, 1)).front();
    };
    // The engine has not computed the row before the last one.
    head.known = {.first = 1, .end = 99};
    CHECK(!propose(0, 2).has_read);
    CHECK(head.positions[0].empty());
    head.known.end = 100;
    CHECK(propose(0, 3).tokens == tokens_of("def"));
    // What was proposed leaves, though it came true.
    CHECK(head.positions[0] == range(1, 100));
    text = joined(text, tokens_of("def"));
    head.known.end = 103;
    auto before = model.rows();
    CHECK(propose(0, 1).tokens == tokens_of("g"));
    CHECK_EQ(model.rows(), before + 3);
    // A text came back from memory: what is known of it stays, what follows is read.
    head.known = {.first = 120, .end = 131};
    text = joined(text, std::vector<Token>(28, 'h'));
    CHECK(propose(0, 1).tokens == tokens_of("i"));
    CHECK(head.positions[0] == joined(range(1, 103), range(120, 131)));
    // So it is in a slot that knows nothing of it, once it can be told what comes.
    head.known = {.first = 131, .end = 131};
    CHECK(!propose(1, 1).has_read);
    head.known = {.first = 130, .end = 131};
    before = model.rows();
    CHECK(propose(1, 1).tokens == tokens_of("i"));
    CHECK_EQ(model.rows(), before + 1);
}

TEST_MAIN()
