// The experiments of lab-filters, one function for each figure or table, by the file they are in.
#pragma once

#include "lab/notebook.h"

namespace helenus::lab {

// filters.cc
void flow_trace_section(Notebook& notebook);

}  // namespace helenus::lab
