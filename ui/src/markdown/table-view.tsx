/** A table. Of a huge one only the beginning is shown, until the user asks for all. */

import type { Tokens } from "marked";
import { useState } from "react";
import { Inline } from "./inline-view.tsx";

const firstRows = 50;
const moreRows = 500;
const firstColumns = 30;

export function TableView({ token }: { token: Tokens.Table }) {
  const [rowCount, setRowCount] = useState(firstRows);
  const [allColumns, setAllColumns] = useState(false);
  const columnCount = allColumns
    ? token.header.length
    : Math.min(firstColumns, token.header.length);
  const rows = token.rows.slice(0, rowCount);
  const hiddenRows = token.rows.length - rows.length;
  const hiddenColumns = token.header.length - columnCount;
  return (
    <div className="table-block">
      <div className="table-scroll" tabIndex={0} role="group" aria-label="Table">
        <table>
          <thead>
            <tr>
              {token.header.slice(0, columnCount).map((cell, index) => (
                <th key={index} scope="col" dir="auto" data-align={cell.align ?? undefined}>
                  <Inline text={cell.text} />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, rowIndex) => (
              <tr key={rowIndex}>
                {row.slice(0, columnCount).map((cell, index) => (
                  <td key={index} dir="auto" data-align={cell.align ?? undefined}>
                    <Inline text={cell.text} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {hiddenRows > 0 && (
        <button type="button" className="quiet" onClick={() => setRowCount(rowCount + moreRows)}>
          Show {Math.min(moreRows, hiddenRows).toLocaleString("en")} more of{" "}
          {token.rows.length.toLocaleString("en")} rows
        </button>
      )}
      {hiddenColumns > 0 && (
        <button type="button" className="quiet" onClick={() => setAllColumns(true)}>
          Show all {token.header.length.toLocaleString("en")} columns
        </button>
      )}
    </div>
  );
}
