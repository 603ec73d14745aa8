// schema-to-gbnf FILE: JSON schemas to GBNF as llama.cpp does it, from a schema a line to a JSON
// string a line; an empty one where it cannot.
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include "json-schema-to-grammar.h"

namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') out += '\\';
        if (letter == '\n') {
            out += "\\n";
        } else {
            out += letter;
        }
    }
    return out + "\"";
}

}  // namespace

int main(int count, char** arguments) {
    std::ifstream file(count > 1 ? arguments[1] : "");
    for (std::string line; std::getline(file, line);) {
        std::string grammar;
        try {
            grammar = json_schema_to_grammar(common_json::parse(line), true);
        } catch (const std::exception&) {
            // Left empty.
        }
        std::cout << quoted(grammar) << "\n";
    }
}
