// The experiments of lab-filters, one function for each figure or table, by the file they are in.
#pragma once

#include "lab/notebook.h"

namespace helenus::lab {

// filters.cc
void flow_trace_section(Notebook& notebook);

// consistent_cuckoo.cc
void ccf_table_2(Notebook& notebook);
void ccf_figure_3(Notebook& notebook);
void ccf_figure_4(Notebook& notebook);
void ccf_figure_5(Notebook& notebook);

}  // namespace helenus::lab
