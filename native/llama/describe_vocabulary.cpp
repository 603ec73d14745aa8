#include "llama/describe_vocabulary.h"

#include <utility>

namespace fermata {

namespace {

// Longer ones fit no trie; as no model writes them, nothing may match them.
constexpr std::size_t kLongestToken = 256;

// What grammars may call a token that no text matches.
std::string name_of(const Vocabulary& vocabulary, Token token) {
    std::string name = vocabulary.spelled_piece(token);
    if (name.empty() || name.size() > kLongestToken || name.front() == kUnmatchable)
        name = "<[" + std::to_string(token) + "]>";
    return name;
}

}  // namespace

VocabularyDescription describe_vocabulary(std::shared_ptr<const Model> model) {
    const Vocabulary& vocabulary = model->vocabulary();
    VocabularyDescription description;
    description.tokens.reserve(static_cast<std::size_t>(vocabulary.size()));
    if (vocabulary.end_token() >= 0) description.end_tokens.push_back(vocabulary.end_token());
    for (Token id = 0; id < vocabulary.size(); ++id) {
        const std::string_view piece = vocabulary.piece(id);
        if (vocabulary.is_end(id) && id != vocabulary.end_token())
            description.end_tokens.push_back(id);
        const bool text = !piece.empty() && piece.size() <= kLongestToken &&
                          piece.front() != kUnmatchable && !vocabulary.is_end(id);
        description.tokens.push_back(text ? std::string(piece)
                                          : kUnmatchable + name_of(vocabulary, id));
    }
    description.tokenize = [model = std::move(model)](std::string_view text) {
        return model->tokenizer().tokenize_continuation(text);
    };
    return description;
}

}  // namespace fermata
