// What is checked of a message before anybody acts upon it, as if a fuzzer had sent it.
//
// The acceptor and the proposer assert that no two documents contradict each other (A3, P3, P4).
// Between nodes that keep the rules nothing else can be; whoever does not is stopped here, so that
// no message makes a node stop:
//   - an Accept that does not follow the document decided here, or puts a second document under a
//     ballot that has one
//   - a proposal in an answer that does not follow the document known here, or has a ballot above
//     that of the question
//   - a document that does not descend from the one known here: some version was made by another
//     change
//   - a content that the owner of the register does not take
// Learn and Decided are believed by other rules: claims.h.
#pragma once

#include <functional>

#include "base/result.h"
#include "consensus/acceptor.h"
#include "consensus/document.h"
#include "consensus/message.h"

namespace helenus::consensus {

// Whether the content of a document is in order; and whether it may follow the document before it,
// where that is known and not null. Errors say what is wrong.
using ContentCheck =
    std::function<base::Result<void>(const Document& document, const Document* previous)>;

// Whether `later` may be `earlier` or come of it by changes: one register, and no version of which
// both know the change was made by two. True of a blank one.
bool descends(const Document& later, const Document& earlier);

// Errors: refused. `check` may be absent.
base::Result<void> screen_document(const Document& document, const Document& known,
                                   const ContentCheck& check);
// Of Accept; whatever else an acceptor is asked, it can answer.
base::Result<void> screen_question(const Message& question, const AcceptorState& state,
                                   const ContentCheck& check);
// Of the answers that have a proposal, where `known` is what the proposer goes by.
base::Result<void> screen_answer(const Message& answer, const Document& known,
                                 const ContentCheck& check);

}  // namespace helenus::consensus
