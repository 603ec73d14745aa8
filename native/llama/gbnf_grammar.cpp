#include "llama/gbnf_grammar.h"

#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/token_mask.h"
#include "llama.h"
#include "llama/gbnf_check.h"
#include "llama/log.h"

namespace fermata {

namespace {

// A mask that takes longer: the stacks that llama.cpp follows have become too many.
constexpr std::chrono::seconds kLongestMask{2};

struct FreeSampler {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
};
using Handle = std::unique_ptr<llama_sampler, FreeSampler>;

// `name`, which llama.cpp has read: `<[id]>`, or the spelling of one token.
Token named_token(const llama_vocab* vocabulary, const std::string& name) {
    if (name.starts_with("<[")) return static_cast<Token>(std::stol(name.substr(2)));
    Token token = -1;
    llama_tokenize(vocabulary, name.data(), static_cast<std::int32_t>(name.size()), &token, 1,
                   false, true);
    return token;
}

// Has no forced tokens, and finds no way to close. stopped() is late: only an end token tells.
// To take a token back it reads all of them again, so it looks at none ahead.
class GbnfMatcher final : public Matcher {
   public:
    GbnfMatcher(std::shared_ptr<const Model> model, Handle handle, std::set<Token> named)
        : model_(std::move(model)), handle_(std::move(handle)), named_(std::move(named)) {}

    bool compute_mask(std::vector<std::uint32_t>& mask) override {
        if (!error_.empty()) return false;
        const auto started = std::chrono::steady_clock::now();
        const Vocabulary& vocabulary = model_->vocabulary();
        candidates_.clear();
        for (Token token = 0; token < vocabulary.size(); ++token) {
            if (vocabulary.is_end(token) || may_match(token))
                candidates_.push_back({token, 0.0f, 0.0f});
        }
        if (!apply(candidates_)) return false;
        mask.assign(mask_words(static_cast<std::size_t>(vocabulary.size())), 0);
        bool any = false;
        for (const llama_token_data& each : candidates_) {
            if (std::isinf(each.logit) || (ended_ && !vocabulary.is_end(each.id))) continue;
            const auto id = static_cast<std::size_t>(each.id);
            mask[id / kMaskWordBits] |= 1u << (id % kMaskWordBits);
            any = true;
        }
        if (!any) error_ = "the grammar allows no token of this vocabulary here";
        if (std::chrono::steady_clock::now() - started > kLongestMask)
            error_ = "the grammar has become too complex";
        return error_.empty();
    }
    bool consume(Token token) override {
        if (!error_.empty()) return false;
        if (!allowed(token)) {
            error_ = "the grammar does not allow this token";
            return false;
        }
        if (!move(token)) return false;
        consumed_.push_back(token);
        return true;
    }
    bool rollback(std::size_t count) override {
        if (!error_.empty() || count > consumed_.size()) return false;
        if (count == 0) return true;
        consumed_.resize(consumed_.size() - count);
        llama_sampler_reset(handle_.get());
        ended_ = false;
        for (const Token token : consumed_) {
            if (!move(token)) return false;
        }
        return true;
    }
    std::size_t accepted(std::span<const Token>) override { return 0; }
    std::vector<Token> forced() override { return {}; }
    Closing closing(std::size_t, std::size_t&) override { return {}; }
    bool accepting() override { return allowed(model_->vocabulary().end_token()); }
    bool stopped() override { return ended_; }
    std::string error() override { return error_; }

   private:
    // llama.cpp compares the spelling of control tokens with text, which nobody would see.
    bool may_match(Token token) const {
        return !model_->vocabulary().piece(token).empty() || named_.contains(token);
    }
    bool allowed(Token token) {
        if (!model_->vocabulary().contains(token)) return false;
        const bool end = model_->vocabulary().is_end(token);
        if (!error_.empty() || (!end && (ended_ || !may_match(token)))) return false;
        std::vector<llama_token_data> one = {{token, 0.0f, 0.0f}};
        return apply(one) && !std::isinf(one[0].logit);
    }
    bool apply(std::vector<llama_token_data>& candidates) {
        try {
            llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
            llama_sampler_apply(handle_.get(), &array);
        } catch (const std::exception& failure) {
            error_ = failure.what();
        }
        return error_.empty();
    }
    // By an allowed token: another one would end the process.
    bool move(Token token) {
        if (model_->vocabulary().is_end(token)) {
            ended_ = true;
            return true;
        }
        try {
            llama_sampler_accept(handle_.get(), token);
        } catch (const std::exception& failure) {
            error_ = failure.what();
        }
        return error_.empty();
    }

    std::shared_ptr<const Model> model_;
    Handle handle_;
    const std::set<Token> named_;
    std::vector<Token> consumed_;
    std::vector<llama_token_data> candidates_;
    bool ended_ = false;
    std::string error_;
};

class GbnfGrammar final : public Grammar {
   public:
    GbnfGrammar(std::shared_ptr<const Model> model, Handle pristine, std::size_t size,
                std::set<Token> named)
        : model_(std::move(model)),
          pristine_(std::move(pristine)),
          bytes_(size * 64),
          named_(std::move(named)) {}

    std::unique_ptr<Matcher> make_matcher() const override {
        const std::lock_guard lock(mutex_);
        return std::make_unique<GbnfMatcher>(model_, Handle(llama_sampler_clone(pristine_.get())),
                                             named_);
    }
    std::size_t bytes() const override { return bytes_; }

   private:
    std::shared_ptr<const Model> model_;
    Handle pristine_;
    std::size_t bytes_;
    std::set<Token> named_;
    mutable std::mutex mutex_;
};

}  // namespace

Result<std::shared_ptr<const Grammar>> compile_gbnf(std::shared_ptr<const Model> model,
                                                    const std::string& text) {
    auto checked = check_gbnf(text);
    if (!checked.ok()) return checked.error();
    const LogCapture log;
    try {
        Handle handle(
            llama_sampler_init_grammar(model->vocabulary().handle(), text.c_str(), "root"));
        if (!handle) {
            return Error{ErrorCode::kGrammarInvalid,
                         log.errors_or("llama.cpp cannot parse the grammar")};
        }
        std::set<Token> named;
        for (const std::string& name : checked.value())
            named.insert(named_token(model->vocabulary().handle(), name));
        return std::shared_ptr<const Grammar>(std::make_shared<GbnfGrammar>(
            std::move(model), std::move(handle), text.size(), std::move(named)));
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kGrammarInvalid, failure.what()};
    }
}

}  // namespace fermata
