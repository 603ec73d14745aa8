#include "llama/vocabulary.h"

#include <algorithm>

#include "llama-vocab.h"
#include "llama.h"

namespace fermata {

namespace {

constexpr int kReserved = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_USER_DEFINED;
constexpr int kSpelled = kReserved | LLAMA_TOKEN_ATTR_UNKNOWN;

std::string piece_of(const llama_vocab* vocab, Token token, bool special) {
    std::string piece(32, '\0');
    auto write = [&] {
        return llama_token_to_piece(vocab, token, piece.data(),
                                    static_cast<std::int32_t>(piece.size()), 0, special);
    };
    std::int32_t length = write();
    if (length < 0) {
        piece.resize(static_cast<std::size_t>(-length));
        length = write();
    }
    piece.resize(static_cast<std::size_t>(std::max(length, 0)));
    return piece;
}

// The ids in the order of llama.cpp's own cache of special tokens. Its sort is not stable, so the
// same sort over the same sequence decides ties as it does.
std::vector<Token> special_ids(const llama_vocab* vocab, std::int32_t count) {
    std::vector<Token> ids;
    std::vector<std::size_t> lengths(static_cast<std::size_t>(count));
    for (Token id = 0; id < count; ++id) {
        lengths[static_cast<std::size_t>(id)] =
            std::string_view(llama_vocab_get_text(vocab, id)).size();
        if (llama_vocab_get_attr(vocab, id) & kSpelled) ids.push_back(id);
    }
    std::sort(ids.begin(), ids.end(), [&](Token a, Token b) {
        return lengths[static_cast<std::size_t>(a)] > lengths[static_cast<std::size_t>(b)];
    });
    return ids;
}

// Some texts llama.cpp splits at newlines only.
bool splits_words_of(const llama_vocab& vocab) {
    const llama_vocab_pre_type kind = vocab.get_pre_type();
    return vocab.get_type() == LLAMA_VOCAB_TYPE_BPE && kind != LLAMA_VOCAB_PRE_TYPE_GEMMA4 &&
           kind != LLAMA_VOCAB_PRE_TYPE_SARVAM_MOE;
}

Token choose_end_token(const llama_vocab* vocab, std::int32_t count) {
    for (const Token id : {llama_vocab_eot(vocab), llama_vocab_eos(vocab)}) {
        if (id >= 0 && llama_vocab_is_eog(vocab, id)) return id;
    }
    for (Token id = 0; id < count; ++id) {
        if (llama_vocab_is_eog(vocab, id)) return id;
    }
    return -1;
}

}  // namespace

Vocabulary::Vocabulary(const llama_vocab* vocab) : vocab_(vocab) {
    const std::int32_t count = llama_vocab_n_tokens(vocab);
    pieces_.reserve(static_cast<std::size_t>(count));
    byte_tokens_.fill(-1);
    splits_words_ = splits_words_of(*vocab);
    for (Token id = 0; id < count; ++id) {
        const bool ends = llama_vocab_is_eog(vocab, id);
        if (ends) end_tokens_.push_back(id);
        std::string piece = ends ? std::string() : piece_of(vocab, id, false);
        if (piece.size() == 1 && !is_reserved(id)) {
            Token& known = byte_tokens_[static_cast<unsigned char>(piece[0])];
            // A written character is closer to what the model has seen than a fallback byte.
            if (known < 0 || (llama_vocab_get_attr(vocab, known) & LLAMA_TOKEN_ATTR_BYTE))
                known = id;
        }
        pieces_.push_back(std::move(piece));
    }
    for (const Token id : special_ids(vocab, count)) {
        const int attributes = llama_vocab_get_attr(vocab, id);
        special_tokens_.push_back({id, llama_vocab_get_text(vocab, id),
                                   attributes & LLAMA_TOKEN_ATTR_USER_DEFINED
                                       ? SpecialKind::kUserDefined
                                       : SpecialKind::kControl,
                                   (attributes & LLAMA_TOKEN_ATTR_LSTRIP) != 0,
                                   (attributes & LLAMA_TOKEN_ATTR_RSTRIP) != 0});
    }
    end_token_ = choose_end_token(vocab, count);
}

std::string Vocabulary::spelled_piece(Token token) const {
    return piece_of(vocab_, token, true);
}

bool Vocabulary::is_end(Token token) const {
    return llama_vocab_is_eog(vocab_, token);
}

bool Vocabulary::is_reserved(Token token) const {
    return (llama_vocab_get_attr(vocab_, token) & kReserved) != 0;
}

Token Vocabulary::bos_token() const {
    return llama_vocab_bos(vocab_);
}

Token Vocabulary::eos_token() const {
    return llama_vocab_eos(vocab_);
}

bool Vocabulary::adds_bos() const {
    return llama_vocab_get_add_bos(vocab_);
}

bool Vocabulary::is_sentencepiece() const {
    return llama_vocab_type(vocab_) == LLAMA_VOCAB_TYPE_SPM;
}

}  // namespace fermata
