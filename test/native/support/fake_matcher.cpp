#include "fake_matcher.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/token_mask.h"

namespace fermata::testing {

namespace {

class FakeMatcher final : public Matcher {
   public:
    FakeMatcher(std::shared_ptr<const FakeGrammarOptions> options, std::atomic<int>* masks,
                std::atomic<int>* looks)
        : options_(std::move(options)), masks_(masks), looks_(looks), backend_({.slot_count = 1}) {}

    bool compute_mask(std::vector<std::uint32_t>& mask) override {
        if (!usable()) return false;
        options_->before_mask();
        ++*masks_;
        mask.assign(mask_words(kVocabulary), 0);
        const auto allow = [&](Token token) {
            const auto id = static_cast<std::size_t>(token);
            mask[id / kMaskWordBits] |= 1u << (id % kMaskWordBits);
        };
        for (Token token = 0; token < kVocabulary; ++token) {
            if (!backend_.is_end(token) && fits(token)) allow(token);
        }
        if (accepting()) {
            allow(kEnd);
            allow(kTurn);
        }
        return true;
    }
    bool consume(Token token) override {
        if (!usable()) return false;
        const bool fine = backend_.is_end(token) ? accepting() : !ended() && fits(token);
        if (!fine) error_ = "the token " + std::to_string(token) + " is not allowed";
        if (fine) consumed_.push_back(token);
        return fine;
    }
    bool rollback(std::size_t count) override {
        if (!usable() || count > consumed_.size()) return false;
        consumed_.resize(consumed_.size() - count);
        return true;
    }
    std::size_t accepted(std::span<const Token> tokens) override {
        const auto before = consumed_;
        std::size_t count = 0;
        while (count < tokens.size() && fits(tokens[count]))
            consumed_.push_back(tokens[count++]);
        consumed_ = before;
        return count;
    }
    std::vector<Token> forced() override {
        std::vector<Token> tokens;
        if (!usable()) return tokens;
        const auto before = consumed_;
        while (!accepting()) {
            const auto next = continuations();
            const bool one = std::ranges::all_of(
                next, [&](const std::string& text) { return text[0] == next[0][0]; });
            if (!one || next.empty()) break;
            tokens.push_back(longest(next));
            consumed_.push_back(tokens.back());
        }
        consumed_ = before;
        return tokens;
    }
    Closing closing(std::size_t most, std::size_t& work) override {
        for (; looked_ < options_->closing_looks; ++looked_, --work, ++*looks_)
            if (work == 0) return {.done = false};
        looked_ = 0;
        if (!usable()) return {};
        if (ended() || accepting()) return {.tokens = std::vector<Token>{}};
        auto next = continuations();
        if (next.empty()) return {};
        const auto& shortest = *std::ranges::min_element(next, {}, &std::string::size);
        if (shortest.size() > most) return {};
        return {.tokens = tokens_of(shortest)};
    }
    bool accepting() override {
        return std::ranges::find(options_->texts, text()) != options_->texts.end();
    }
    bool stopped() override { return ended() || (accepting() && continuations().empty()); }
    std::string error() override { return error_; }

   private:
    bool usable() {
        if (looked_ > 0) throw std::logic_error("FakeMatcher: called while it searches for an end");
        if (options_->fails_after >= 0 &&
            static_cast<int>(consumed_.size()) >= options_->fails_after)
            error_ = "the fake grammar fails here";
        return error_.empty();
    }
    bool ended() const { return !consumed_.empty() && backend_.is_end(consumed_.back()); }
    std::string text() const {
        std::string text;
        for (const Token token : consumed_)
            text += backend_.piece(token);
        return text;
    }
    // What may follow, to the end of each text; never empty strings.
    std::vector<std::string> continuations() const {
        const std::string so_far = text();
        std::vector<std::string> rest;
        for (const std::string& each : options_->texts) {
            if (each.size() > so_far.size() && each.starts_with(so_far))
                rest.push_back(each.substr(so_far.size()));
        }
        return rest;
    }
    bool fits(Token token) const {
        const std::string_view piece = backend_.piece(token);
        return !piece.empty() && std::ranges::any_of(continuations(), [&](const auto& rest) {
            return std::string_view(rest).starts_with(piece);
        });
    }
    // The longest token that all of `next` begin with.
    Token longest(const std::vector<std::string>& next) const {
        Token best = static_cast<Token>(next[0][0]);
        for (Token token = 1; token < kVocabulary; ++token) {
            const std::string_view piece = backend_.piece(token);
            if (piece.size() > backend_.piece(best).size() &&
                std::ranges::all_of(next, [&](const auto& rest) {
                    return std::string_view(rest).starts_with(piece);
                }))
                best = token;
        }
        return best;
    }

    std::shared_ptr<const FakeGrammarOptions> options_;
    std::atomic<int>* masks_;
    std::atomic<int>* looks_;
    int looked_ = 0;
    FakeBackend backend_;
    std::vector<Token> consumed_;
    std::string error_;
};

}  // namespace

FakeGrammar::FakeGrammar(FakeGrammarOptions options)
    : options_(std::make_shared<const FakeGrammarOptions>(std::move(options))) {}

std::unique_ptr<Matcher> FakeGrammar::make_matcher() const {
    if (!options_->has_memory) return nullptr;
    return std::make_unique<FakeMatcher>(options_, &masks_, &looks_);
}

std::shared_ptr<const FakeGrammar> texts(std::vector<std::string> texts) {
    return std::make_shared<const FakeGrammar>(FakeGrammarOptions{.texts = std::move(texts)});
}

}  // namespace fermata::testing
