// LarkCompiler on llguidance's C interface.
#include "llguidance.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <utility>

#include "core/token_mask.h"
#include "guidance/closing.h"
#include "guidance/deep_stack.h"
#include "guidance/grammar_limits.h"
#include "guidance/lark_compiler.h"
#include "guidance/unique_items.h"

namespace fermata {

namespace {

constexpr std::size_t kLongestMessage = 1000;
constexpr std::size_t kTokensPerFuel = 32;

struct FreeTokenizer {
    void operator()(LlgTokenizer* tokenizer) const { llg_free_tokenizer(tokenizer); }
};
struct FreeMatcher {
    void operator()(LlgMatcher* matcher) const { llg_free_matcher(matcher); }
};
using MatcherHandle = std::unique_ptr<LlgMatcher, FreeMatcher>;

// A matcher uses the tokenizer and calls back into the description: both live as long as it.
struct Tokenizer {
    VocabularyDescription vocabulary;
    std::unique_ptr<ClosingTokens> closing;
    std::unique_ptr<LlgTokenizer, FreeTokenizer> handle;
    mutable std::once_flag sorted;
    mutable std::unique_ptr<UniqueVocabulary> unique;

    // Made when the first grammar needs it.
    const UniqueVocabulary& unique_vocabulary() const {
        std::call_once(sorted, [this] { unique = std::make_unique<UniqueVocabulary>(vocabulary); });
        return *unique;
    }

    bool is_end(Token token) const {
        return std::ranges::find(vocabulary.end_tokens, token) != vocabulary.end_tokens.end();
    }
};

std::size_t tokenize(const void* vocabulary, const std::uint8_t* bytes, std::size_t length,
                     std::uint32_t* output, std::size_t room) {
    const auto& description = *static_cast<const VocabularyDescription*>(vocabulary);
    const auto tokens = description.tokenize({reinterpret_cast<const char*>(bytes), length});
    for (std::size_t i = 0; i < std::min(tokens.size(), room); ++i)
        output[i] = static_cast<std::uint32_t>(tokens[i]);
    return tokens.size();
}

std::string plain(const char* message) {
    std::string text = message == nullptr ? "" : message;
    // What llguidance puts in place of its state, which is of no use to a caller.
    if (const auto at = text.find("\n<non-verbose/>"); at != std::string::npos) text.resize(at);
    // It quotes the line at fault, which may be the whole grammar.
    if (text.size() > kLongestMessage) text = text.substr(0, kLongestMessage) + " ...";
    return text;
}

// The limits that llguidance reports, as it words them.
bool names_a_limit(const std::string& message) {
    return message.find("too large") != std::string::npos ||
           message.find("too many") != std::string::npos ||
           message.find("limit") != std::string::npos || message.find("fuel") != std::string::npos;
}

// What all matchers of a grammar share.
class Pristine {
   public:
    Pristine(std::shared_ptr<const Tokenizer> tokenizer, std::vector<std::string> delimiters,
             MatcherHandle matcher, bool goes_back, bool has_unique)
        : tokenizer_(std::move(tokenizer)),
          delimiters_(std::move(delimiters)),
          matcher_(std::move(matcher)),
          goes_back_(goes_back),
          has_unique_(has_unique) {}

    MatcherHandle clone() const {
        const std::lock_guard lock(mutex_);
        return MatcherHandle(llg_clone_matcher(matcher_.get()));
    }
    const Tokenizer& tokenizer() const { return *tokenizer_; }
    const std::vector<std::string>& delimiters() const { return delimiters_; }
    // llguidance cannot take back tokens of a grammar with `stop` or `max_tokens`.
    bool goes_back() const { return goes_back_; }
    // It marks arrays whose items must all differ.
    bool has_unique() const { return has_unique_; }

   private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    std::vector<std::string> delimiters_;
    MatcherHandle matcher_;
    bool goes_back_;
    bool has_unique_;
    mutable std::mutex mutex_;
};

class LarkMatcher final : public Matcher {
   public:
    explicit LarkMatcher(std::shared_ptr<const Pristine> pristine)
        : pristine_(std::move(pristine)), handle_(pristine_->clone()) {
        if (pristine_->has_unique())
            unique_.emplace(pristine_->tokenizer().unique_vocabulary(),
                            [this](const std::vector<Token>& tokens) { return valid(tokens); });
    }

    bool compute_mask(std::vector<std::uint32_t>& mask) override {
        const std::size_t bytes = llg_matcher_get_mask_byte_size(handle_.get());
        mask.resize(bytes / sizeof(std::uint32_t));
        const auto compute = [&] {
            return llg_matcher_compute_mask_into(handle_.get(), mask.data(), bytes) == 0;
        };
        if (!compute() && !(renew() && compute())) return false;
        if (unique_) unique_->filter(mask);
        return true;
    }
    bool consume(Token token) override {
        if (llg_matcher_is_stopped(handle_.get()) && !llg_matcher_is_error(handle_.get()) &&
            pristine_->tokenizer().is_end(token)) {
            ++ends_;
            return true;
        }
        if (unique_) unique_->consume(token);
        if (!advance(token) && !(renew() && advance(token))) return false;
        consumed_.push_back(token);
        return true;
    }
    bool rollback(std::size_t count) override {
        const std::size_t ends =
            std::min(std::exchange(ends_, ends_ - std::min(ends_, count)), count);
        consumed_.resize(consumed_.size() - std::min(consumed_.size(), count - ends));
        if (unique_ && count > ends) unique_->rollback(consumed_);
        if (!pristine_->goes_back()) return count == ends || restart();
        if (llg_matcher_rollback(handle_.get(), count - ends) == 0) return true;
        // A search may have come to where a mask takes too long: what was consumed before stands.
        return search_ ? restart() : renew();
    }
    std::size_t accepted(std::span<const Token> tokens) override {
        if (!pristine_->goes_back()) return 0;
        return unrepeated(tokens.first(valid(tokens)));
    }
    std::vector<Token> forced() override {
        std::array<std::uint32_t, kMostForcedTokens> buffer;
        const std::int32_t count =
            llg_matcher_compute_ff_tokens(handle_.get(), buffer.data(), buffer.size());
        std::vector<Token> tokens(buffer.begin(), buffer.begin() + std::max(count, 0));
        tokens.resize(unrepeated(tokens));
        return tokens;
    }
    Closing closing(std::size_t most, std::size_t& work) override {
        if (!pristine_->goes_back() || (!search_ && !error().empty())) return {};
        if (!search_)
            search_.emplace(*pristine_->tokenizer().closing, *this, most, pristine_->delimiters());
        Closing closing = search_->advance(work);
        if (closing.done) search_.reset();
        return closing;
    }
    bool accepting() override { return llg_matcher_is_accepting(handle_.get()); }
    bool stopped() override { return llg_matcher_is_stopped(handle_.get()); }
    std::string error() override { return plain(llg_matcher_get_error(handle_.get())); }

   private:
    bool advance(Token token) {
        return llg_matcher_consume_token(handle_.get(), static_cast<std::uint32_t>(token)) == 0;
    }

    // As accepted(), whatever items are repeated.
    std::size_t valid(std::span<const Token> tokens) {
        static_assert(sizeof(Token) == sizeof(std::uint32_t));
        const auto* ids = reinterpret_cast<const std::uint32_t*>(tokens.data());
        const auto validate = [&] {
            return llg_matcher_validate_tokens(handle_.get(), ids, tokens.size());
        };
        std::int32_t count = validate();
        if (count < 0 && renew()) count = validate();
        return static_cast<std::size_t>(std::max(count, 0));
    }

    // Of valid tokens, how many repeat no item of an array whose items must all differ.
    std::size_t unrepeated(std::span<const Token> tokens) {
        const auto is_idle = [this](Token token) { return unique_->is_idle(token); };
        if (!unique_ || std::ranges::all_of(tokens, is_idle)) return tokens.size();
        std::size_t count = 0;
        std::size_t ends = 0;
        while (ends == 0 && count < tokens.size() && unique_->allows(tokens[count])) {
            // Nothing follows an end.
            if (pristine_->tokenizer().is_end(tokens[count]))
                ends = 1;
            else if (consume(tokens[count]))
                ++count;
            else
                break;
        }
        return rollback(count) ? count + ends : 0;
    }

    // A lexer keeps every state that it has looked at, and their expressions: of a text of limited
    // length one for each character, and several for what might have come instead. When there are
    // too many, a new lexer that only walks the text so far has few again. False: that was not the
    // fault, or does not help.
    bool renew() {
        const std::string problem = error();
        const bool is_limit = problem.find("too many states") != std::string::npos ||
                              problem.find("too many expressions") != std::string::npos;
        return is_limit && restart();
    }
    bool restart() {
        handle_ = pristine_->clone();
        if (handle_ == nullptr) return false;
        std::vector<std::uint32_t> mask(llg_matcher_get_mask_byte_size(handle_.get()) /
                                        sizeof(std::uint32_t));
        const auto refuel = [&] {
            return llg_matcher_compute_mask_into(handle_.get(), mask.data(),
                                                 mask.size() * sizeof(std::uint32_t)) == 0;
        };
        for (std::size_t i = 0; i < consumed_.size(); ++i) {
            if (!advance(consumed_[i])) return false;
            // Only a mask fuels the lexer anew.
            if (i % kTokensPerFuel == kTokensPerFuel - 1 && !refuel()) return false;
        }
        return true;
    }

    std::shared_ptr<const Pristine> pristine_;
    MatcherHandle handle_;
    std::vector<Token> consumed_;
    std::size_t ends_ =
        0;  // end tokens that followed a complete text; llguidance knows not of them
    std::optional<ClosingSearch> search_;
    std::optional<UniqueItems> unique_;
};

class LarkGrammar final : public Grammar {
   public:
    LarkGrammar(std::shared_ptr<const Pristine> pristine, std::size_t bytes)
        : pristine_(std::move(pristine)), bytes_(bytes) {}

    std::unique_ptr<Matcher> make_matcher() const override {
        return std::make_unique<LarkMatcher>(pristine_);
    }
    std::size_t bytes() const override { return bytes_; }

   private:
    std::shared_ptr<const Pristine> pristine_;
    std::size_t bytes_;
};

class LlguidanceCompiler final : public LarkCompiler {
   public:
    explicit LlguidanceCompiler(std::shared_ptr<const Tokenizer> tokenizer)
        : tokenizer_(std::move(tokenizer)) {}

    Result<std::shared_ptr<const Grammar>> compile(const std::string& lark) const override {
        if (auto fault = grammar_fault(lark)) return *fault;
        LlgConstraintInit init = {};
        llg_constraint_init_set_defaults(&init, tokenizer_->handle.get());
        init.log_buffer_level = 0;
        init.log_stderr_level = 0;
        init.limits = {.max_items_in_row = kMaxItemsInRow,
                       .initial_lexer_fuel = kCompileFuel,
                       .step_lexer_fuel = kStepFuel,
                       .step_max_items = kStepItems,
                       .max_lexer_states = kMaxLexerStates,
                       .max_grammar_size = kMaxGrammarSymbols,
                       .precompute_large_lexemes = true,
                       .verbose_errors = false};
        MatcherHandle pristine;
        const bool called = on_deep_stack(kCompileStack + kStackPerByte * lark.size(), [&] {
            pristine.reset(llg_new_matcher(&init, "lark", lark.c_str()));
        });
        if (!called) return Error{ErrorCode::kGrammarTooLarge, "There is no memory to compile it."};
        if (llg_matcher_is_error(pristine.get())) return error_of(pristine.get());
        // One that allows no first token compiles, and would fail the sequence that uses it.
        const MatcherHandle first(llg_clone_matcher(pristine.get()));
        std::vector<std::uint32_t> mask(llg_matcher_get_mask_byte_size(first.get()) /
                                        sizeof(std::uint32_t));
        const std::size_t bytes = mask.size() * sizeof(std::uint32_t);
        if (llg_matcher_compute_mask_into(first.get(), mask.data(), bytes) != 0)
            return error_of(first.get());
        const bool goes_back = can_go_back(first.get(), mask);
        return std::shared_ptr<const Grammar>(std::make_shared<LarkGrammar>(
            std::make_shared<const Pristine>(tokenizer_, literals_of(lark), std::move(pristine),
                                             goes_back, UniqueItems::are_in(lark)),
            kGrammarBaseBytes + kBytesPerCharacter * lark.size()));
    }

   private:
    // After the matcher's mask. It is not used any more.
    bool can_go_back(LlgMatcher* matcher, TokenMask mask) const {
        std::optional<Token> allowed;
        for_each_allowed(mask, tokenizer_->vocabulary.tokens.size(), [&](std::size_t id) {
            const auto token = static_cast<Token>(id);
            if (!allowed && !tokenizer_->is_end(token)) allowed = token;
        });
        return !allowed ||
               (llg_matcher_consume_token(matcher, static_cast<std::uint32_t>(*allowed)) == 0 &&
                llg_matcher_rollback(matcher, 1) == 0);
    }

    static Error error_of(LlgMatcher* matcher) {
        const std::string message = plain(llg_matcher_get_error(matcher));
        if (message.find("NoExtensionBias") != std::string::npos)
            return Error{ErrorCode::kGrammarInvalid, "It allows no text at all."};
        return Error{
            names_a_limit(message) ? ErrorCode::kGrammarTooLarge : ErrorCode::kGrammarInvalid,
            message};
    }

    std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

bool LarkCompiler::available() {
    return true;
}

Result<std::shared_ptr<const LarkCompiler>> LarkCompiler::create(VocabularyDescription vocabulary) {
    auto tokenizer = std::make_shared<Tokenizer>();
    tokenizer->vocabulary = std::move(vocabulary);
    const VocabularyDescription& description = tokenizer->vocabulary;
    if (description.end_tokens.empty())
        return Error{ErrorCode::kInvalidArgument, "The vocabulary has no end token."};
    tokenizer->closing = std::make_unique<ClosingTokens>(description);
    std::vector<std::uint32_t> lengths;
    std::string bytes;
    for (const std::string& token : description.tokens) {
        lengths.push_back(static_cast<std::uint32_t>(token.size()));
        bytes += token;
    }
    const std::vector<std::uint32_t> ends(description.end_tokens.begin(),
                                          description.end_tokens.end());
    LlgTokenizerInitV2 init = {};
    init.struct_size = sizeof(init);
    init.vocab_size = static_cast<std::uint32_t>(lengths.size());
    init.tok_eos = ends.front();
    init.tok_eos_extra = ends.data() + 1;
    init.tok_eos_extra_count = static_cast<std::uint32_t>(ends.size() - 1);
    init.token_lens = lengths.data();
    init.token_bytes = reinterpret_cast<const std::uint8_t*>(bytes.data());
    init.tokenize_fn = tokenize;
    init.tokenize_user_data = &description;
    init.tokenize_assumes_string = true;
    std::array<char, 512> message = {};
    tokenizer->handle.reset(llg_new_tokenizer_v2(&init, message.data(), message.size()));
    if (!tokenizer->handle) return Error{ErrorCode::kInvalidArgument, message.data()};
    return std::shared_ptr<const LarkCompiler>(
        std::make_shared<LlguidanceCompiler>(std::move(tokenizer)));
}

}  // namespace fermata
