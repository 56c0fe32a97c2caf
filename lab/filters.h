// The experiments of lab-filters, one function for each figure or table, by the file they are in.
#pragma once

#include "lab/notebook.h"

namespace helenus::lab {

// filters.cc
void flow_trace_section(Notebook& notebook);

// forgetful.cc
void forgetful_figure_8(Notebook& notebook);
void forgetful_figure_9(Notebook& notebook);
void forgetful_figure_10(Notebook& notebook);
void forgetful_figure_11(Notebook& notebook);
void forgetful_figure_12(Notebook& notebook);
void forgetful_figure_13(Notebook& notebook);
void forgetful_figure_16(Notebook& notebook);
void sliced_beside_forgetful(Notebook& notebook);
void burst_section(Notebook& notebook);

// consistent_cuckoo.cc
void ccf_table_2(Notebook& notebook);
void ccf_figure_3(Notebook& notebook);
void ccf_figure_4(Notebook& notebook);
void ccf_figure_5(Notebook& notebook);

}  // namespace helenus::lab
